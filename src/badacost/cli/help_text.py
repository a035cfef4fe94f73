"""Help texts of commands: flags without a type."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows ``--quiet``, and not ``--quiet <bool>``."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _hide_types_of_flags(self, ctx)
        super().format_help(ctx, formatter)


class Group(TyperGroup):
    """A group of commands, of the same help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        _hide_types_of_flags(self, ctx)
        super().format_help(ctx, formatter)


def _hide_types_of_flags(command: Any, ctx: Any) -> None:
    for option in command.get_params(ctx):
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""


def show_flags(app: typer.Typer) -> None:
    """Make all commands of an application, and of its groups, show flags without a type."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            show_flags(group.typer_instance)
            if not isinstance(group.typer_instance.info.cls, type):  # the default
                group.typer_instance.info.cls = Group
