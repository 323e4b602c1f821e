# SPDX-License-Identifier: Apache-2.0
"""Names of folders that neither make nor the shell can take.

Read by Pythons that are too old for the rest, before anything is installed: standard library only,
and syntax that they know.
"""

HARD = "\"#$&'()*:;<=>?[\\]`|"
"""What make or the shell reads in its own way, and so cannot be in the name of a folder."""


def hard_name(path):
    # type: (str) -> str | None
    """Return why nothing can be built in a folder, None if its name is fine.

    The makefiles that Verilator writes hold the path as it is, so that make splits it at blanks;
    letters that are not ASCII they hold in another form.
    """
    for char in path:
        if char.isspace() or char in HARD or not 32 < ord(char) < 127:
            what = "a blank" if char == " " else repr(char)
            return "%s: given a path with %s, which make cannot take: move it" % (
                path,
                what,
            )
    return None
