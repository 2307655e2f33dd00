/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* First look at XML files and synthetic descriptions. Must not know hwloc. */
#include "machine/document.h"

#include "base/cleanup.h"
#include "machine/machine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* The largest real one that we know (24 packages) has 335 KB. */
#define DOCUMENT_SIZE_MAX (32u << 20)
#define FORMAT_MAX 2u

static int open_regular(const char *path, size_t *ret_size, struct cp_error *error)
{
    /* Not to hang on a FIFO. */
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) < 0) {
        int code = errno;

        return cp_error_set_at(error, code, path, 0, 0, "%s", strerror(code));
    }
    if (S_ISDIR(status.st_mode))
        return cp_error_set_at(error, EISDIR, path, 0, 0,
                               "this is a directory, not an hwloc XML file");
    if (!S_ISREG(status.st_mode))
        return cp_error_set_at(error, EINVAL, path, 0, 0, "this is not a regular file");
    if (status.st_size > (off_t)DOCUMENT_SIZE_MAX)
        return cp_error_set_at(error, EFBIG, path, 0, 0, "the file is larger than %u MiB",
                               DOCUMENT_SIZE_MAX >> 20);
    *ret_size = (size_t)status.st_size;
    return TAKE_FD(fd);
}

/* Reads up to size bytes; a file that shrinks meanwhile gives fewer. */
static int read_all(int fd, char *buffer, size_t size, size_t *ret_n)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, buffer + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *ret_n = n;
    return 0;
}

/* The first element's "<": behind white space, declarations, comments and a document type. NULL:
 * there is none. */
static const char *find_root_element(const char *text)
{
    for (;;) {
        const char *end;

        text += strspn(text, " \t\r\n");
        if (strncmp(text, "<?", 2) == 0)
            end = strstr(text, "?>");
        else if (strncmp(text, "<!--", 4) == 0)
            end = strstr(text, "-->");
        else if (strncmp(text, "<!", 2) == 0)
            end = strchr(text, '>');
        else
            return *text == '<' ? text : NULL;
        if (!end)
            return NULL;
        text = strchr(end, '>') + 1;
    }
}

static unsigned line_of(const char *text, const char *place)
{
    unsigned line = 1;

    for (; text < place; text++)
        line += *text == '\n';
    return line;
}

/* Refuses formats that the installed hwloc cannot read: format 1 has no version attribute. */
static int check_version(const char *path, const char *text, const char *element,
                         struct cp_error *error)
{
    size_t length = strcspn(element, ">");
    const char *version = memmem(element, length, "version=", strlen("version="));
    unsigned long major;
    char *end;

    if (!version)
        return 0;
    version += strlen("version=");
    version += *version == '"' || *version == '\'';
    errno = 0;
    major = strtoul(version, &end, 10);
    if (end == version || errno != 0)
        return cp_error_set_at(error, EBADMSG, path, line_of(text, version), 0,
                               "the version of the hwloc XML format is not a number");
    if (major > FORMAT_MAX)
        return cp_error_set_at(error, EPROTONOSUPPORT, path, line_of(text, version), 0,
                               "this is hwloc XML format %.*s, written by a newer hwloc; coplace "
                               "reads formats 1 and 2 (hwloc 3 writes format 2 with "
                               "\"lstopo --export-xml-flags v2\")",
                               (int)strspn(version, "0123456789."), version);
    return 0;
}

static int check_document(const char *path, const char *text, size_t size, struct cp_error *error)
{
    const char *element;

    if (size == 0)
        return cp_error_set_at(error, EBADMSG, path, 0, 0, "the file is empty");
    if (memchr(text, '\0', size))
        return cp_error_set_at(error, EBADMSG, path, 0, 0,
                               "the file is binary (compressed?), not hwloc XML");
    element = find_root_element(text);
    if (!element || strncmp(element, "<topology", 9) != 0 || isalnum((unsigned char)element[9]))
        return cp_error_set_at(error, EBADMSG, path, 0, 0,
                               "this is not an hwloc XML file: it does not begin with a "
                               "<topology> element (\"lstopo FILE.xml\" writes one)");
    return check_version(path, text, element, error);
}

int cp_document_read(const char *path, char **ret_text, size_t *ret_size, struct cp_error *error)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    _cleanup_close_ int fd = open_regular(path, &size, error);
    int r;

    if (fd < 0)
        return fd;
    text = malloc(size + 1);
    if (!text)
        return cp_error_set_at(error, ENOMEM, path, 0, 0, "no memory for this file");
    r = read_all(fd, text, size, &size);
    if (r < 0)
        return cp_error_set_at(error, -r, path, 0, 0, "%s", strerror(-r));
    text[size] = '\0';
    r = check_document(path, text, size, error);
    if (r < 0)
        return r;
    *ret_text = TAKE_PTR(text);
    *ret_size = size + 1;
    return 0;
}

/*
 * Walks over the levels of a synthetic description ("package:2 [numa] l3:4(size=…) 2 pu:2"):
 * multiplies their counts, passing over attributes in parentheses and attached memory in brackets.
 */
static uint64_t count_synthetic(const char *text)
{
    uint64_t n = 1;

    while (*text && n <= CP_MACHINE_CPUS_MAX) {
        if (*text == '(' || *text == '[') {
            text += strcspn(text, *text == '(' ? ")" : "]");
            text += *text != '\0';
        } else if (isspace((unsigned char)*text)) {
            text++;
        } else {
            const char *token = text;
            size_t length = strcspn(text, " \t\n([");
            const char *colon = memchr(token, ':', length);
            const char *number = colon ? colon + 1 : token;

            if (isdigit((unsigned char)*number)) {
                unsigned long count = strtoul(number, NULL, 10);

                n = count > CP_MACHINE_CPUS_MAX ? count : n * count;
            }
            text += length;
        }
    }
    return n;
}

int cp_document_check_synthetic(const char *text, struct cp_error *error)
{
    if (text[strspn(text, " \t\n")] == '\0')
        return cp_error_set(error, EINVAL, "the synthetic machine has no description");
    if (strlen(text) > 4096)
        return cp_error_set(error, E2BIG,
                            "the description of the synthetic machine is longer than 4096 bytes");
    if (count_synthetic(text) > CP_MACHINE_CPUS_MAX)
        return cp_error_set(error, E2BIG,
                            "\"%.200s\" describes more than %u CPUs, the most that is supported",
                            text, CP_MACHINE_CPUS_MAX);
    return 0;
}
