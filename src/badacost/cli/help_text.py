"""Help texts of commands: flags without a type."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class _PlainFlags:
    """Makes the help show ``--quiet``, and not ``--quiet <bool>``."""

    def format_help(self: Any, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        for option in self.get_params(ctx):
            if getattr(option, "is_flag", False) and option.metavar is None:
                option.metavar = ""
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Command(_PlainFlags, TyperCommand):
    """A command with plain flags."""


class Group(_PlainFlags, TyperGroup):
    """A group of commands with plain flags."""


def show_flags(app: typer.Typer) -> None:
    """Make all commands of an application, and of its groups, show flags without a type."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            show_flags(group.typer_instance)
            if not isinstance(group.typer_instance.info.cls, type):  # the default
                group.typer_instance.info.cls = Group
