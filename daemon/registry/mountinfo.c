/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of mountinfo. Pure: no system call, no log. */
#include "registry/mountinfo.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Undoes "\ooo" in place: the kernel writes blanks, newlines, backslashes and '#' so. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && is_octal(from[2]) &&
            is_octal(from[3])) {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Fields: mount id, parent, device, root, mount point, options, any number of tags, "-", type,
 * source (may be empty), superblock options (foreign file systems may write blanks there). */
static int parse_line(char *line, struct cp_mountinfo_entry *ret_entry)
{
    char *field[6];
    char *tag;
    char *fs_type;

    for (unsigned i = 0; i < 6; i++) {
        do
            field[i] = strsep(&line, " ");
        while (field[i] && !*field[i]);
        if (!field[i])
            return -EBADMSG;
    }
    do {
        tag = strsep(&line, " ");
        if (!tag)
            return -EBADMSG;
    } while (strcmp(tag, "-") != 0);
    fs_type = strsep(&line, " ");
    if (!fs_type || !strsep(&line, " ") || !line || field[4][0] != '/')
        return -EBADMSG;
    unescape(field[3]);
    unescape(field[4]);
    *ret_entry = (struct cp_mountinfo_entry){
        .root = field[3],
        .mount_point = field[4],
        .fs_type = fs_type,
        .options = line,
    };
    return 0;
}

int cp_mountinfo_next(char **text, struct cp_mountinfo_entry *ret_entry)
{
    char *line;

    do
        line = strsep(text, "\n");
    while (line && !*line);
    return line ? parse_line(line, ret_entry) : CP_MOUNTINFO_END;
}
