"""`logyard version`: which release this is, and which the server is."""

import click

from logyard_api.cli import output
from logyard_api.cli.outcomes import NoServer
from logyard_api.cli.session import Session, asks
from logyard_api.release import VERSION


@click.command()
@asks
def version(session: Session) -> None:
    """Versions of this program and of the server that would be asked."""
    try:
        told = session.client.get("/version")
    except NoServer as trouble:
        if session.json:
            output.answer_json({"program": VERSION, "server": None})
        else:
            output.answer(f"logyard {VERSION}")
            output.say(trouble.message)
        return
    if session.json:
        output.answer_json({"program": VERSION, "server": told})
        return
    output.answer(f"logyard {VERSION}")
    place = session.client.place
    output.answer(
        f"server  {told.get('logyard', '?')} at {place.url} ({place.origin}),"
        f" cluster {told.get('cluster', '?')}, API {told['version']}"
    )
