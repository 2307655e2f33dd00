/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the lines of /proc/PID/mountinfo (proc(5)). Pure: opens nothing, chooses nothing. */
#pragma once

/* One mount. The strings lie in the text that was given, escapes undone. */
struct cp_mountinfo_entry {
    const char *root;        /* what of the file system is mounted there */
    const char *mount_point; /* relative to the reading process's root, begins with a slash */
    const char *fs_type;
    const char *options; /* of the superblock, escapes as they are: commas still separate */
};

#define CP_MOUNTINFO_END 1

/*
 * Takes the next line that is not empty off *text, which it changes. 0; CP_MOUNTINFO_END behind the
 * last line; -EBADMSG: not such a line. Octal escapes ("\040") are undone in root and mount point.
 */
int cp_mountinfo_next(char **text, struct cp_mountinfo_entry *ret_entry);
