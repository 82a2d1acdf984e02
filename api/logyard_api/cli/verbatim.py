"""Commands whose arguments may begin with a dash, such as `-1` or `-group.priority`."""

import click


class Verbatim(click.Command):
    """Takes for an option only what the command has as one; all else is an argument, as it is."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        flags, takers = self._options(ctx)
        options: list[str] = []
        arguments: list[str] = []
        rest = iter(args)
        for one in rest:
            name, equals, _ = one.partition("=")
            if one == "--":
                arguments += rest
            elif one in flags or (equals and name in takers):
                options.append(one)
            elif one in takers:
                options += [one, *([value] if (value := next(rest, None)) is not None else [])]
            else:
                arguments.append(one)
        return super().parse_args(ctx, [*options, "--", *arguments])

    def _options(self, ctx: click.Context) -> tuple[set[str], set[str]]:
        flags: set[str] = set()
        takers: set[str] = set()
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                (flags if parameter.is_flag else takers).update(parameter.opts)
        return flags, takers
