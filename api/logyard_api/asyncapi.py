"""The AsyncAPI 3.0 document of the event stream, made from the event types."""

import inspect
from typing import Any

import msgspec

from logyard_api.choice import TYPE_PREFIX
from logyard_api.release import VERSION
from logyard_domain.events import AnyEvent
from logyard_projections.answers.streams import CloudEvent

REF = "#/components/schemas/{name}"
Json = dict[str, Any]


def document() -> Json:
    """One channel, one message for each event type."""
    kinds = list(AnyEvent.__args__)
    _, schemas = msgspec.json.schema_components([*kinds, CloudEvent], ref_template=REF)
    messages: Json = {}
    for kind in kinds:
        tag = str(kind.__struct_config__.tag)
        messages[tag] = _message(kind, tag)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Logyard events",
            "version": VERSION,
            "description": "Everything that happens on a cluster, in the order of its log.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {
            "events": {
                "address": "/v4/events",
                "description": (
                    "Server-sent events: `id` is the position, `event` the type, `data` a "
                    "CloudEvent 1.0. A listener that connects again sends Last-Event-ID and misses "
                    "nothing."
                ),
                "bindings": {"http": {"bindingVersion": "0.3.0"}},
                "messages": {
                    tag: {"$ref": f"#/components/messages/{tag}"} for tag in sorted(messages)
                },
            }
        },
        "operations": {
            "follow": {
                "action": "send",
                "channel": {"$ref": "#/channels/events"},
                "summary": "The server sends each event once it is on disk.",
                "bindings": {"http": {"method": "GET", "bindingVersion": "0.3.0"}},
            }
        },
        "components": {"messages": dict(sorted(messages.items())), "schemas": schemas},
    }


def _message(kind: type[msgspec.Struct], tag: str) -> Json:
    return {
        "name": TYPE_PREFIX + tag,
        "summary": inspect.cleandoc(kind.__doc__ or tag).split("\n\n")[0].replace("\n", " "),
        "contentType": "application/cloudevents+json",
        "payload": {
            "allOf": [
                {"$ref": REF.format(name="CloudEvent")},
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": TYPE_PREFIX + tag},
                        "data": {"$ref": REF.format(name=kind.__name__)},
                    },
                },
            ]
        },
    }
