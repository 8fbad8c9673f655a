"""Draws events and items for the terminal. All text from outside is sanitized here.

`event.render_event` makes a `ScrollbackEntry` of whatever goes to the scrollback, `markdown.MarkdownStream` the
blocks of a message that is still coming, `tool_call.render_running_command` and the like what is drawn again and
again; `entry.Flow` sets the blank lines between them and `entry.to_lines` makes lines of them. `theme`, `status`
and `plain` do without rich, so that the prompt is there before it is.
"""
