"""`logyard version`: which release this is, and which the server is."""

import click

import logyard
from logyard_api.cli import output
from logyard_api.cli.outcomes import NoServer
from logyard_api.cli.session import Session, asks


@click.command()
@asks
def version(session: Session) -> None:
    """Versions of this program and of the server that would be asked."""
    try:
        told = session.client.get("/version")
    except NoServer as trouble:
        if session.json:
            output.answer_json({"program": logyard.__version__, "server": None})
        else:
            output.answer(f"logyard {logyard.__version__}")
            output.say(trouble.message)
        return
    if session.json:
        output.answer_json({"program": logyard.__version__, "server": told})
        return
    output.answer(f"logyard {logyard.__version__}")
    place = session.client.place
    output.answer(
        f"server  {told.get('logyard', '?')} at {place.url} ({place.origin}),"
        f" cluster {told.get('cluster', '?')}, API {told['version']}"
    )
