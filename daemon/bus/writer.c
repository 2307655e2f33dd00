/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Typed steps of writing a D-Bus message. Knows types, not what they mean. */
#include "bus/writer.h"

#include "base/cleanup.h"
#include "bus/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static void note(struct cp_bus_writer *writer, int r)
{
    if (r < 0 && writer->error == 0)
        writer->error = r;
}

void cp_bus_put_text(struct cp_bus_writer *writer, const char *key, const char *text)
{
    _cleanup_free_ char *copy = NULL;

    if (writer->error)
        return;
    if (!text)
        text = "";
    if (!cp_bus_text_is_clean(text)) {
        copy = strdup(text);
        if (!copy) {
            note(writer, -ENOMEM);
            return;
        }
        cp_bus_text_clean(copy);
        text = copy;
    }
    note(writer, sd_bus_message_append(writer->message, "{sv}", key, "s", text));
}

void cp_bus_put_number(struct cp_bus_writer *writer, const char *key, double value)
{
    double shown = isfinite(value) ? value : 0.0;

    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "d", shown));
}

void cp_bus_put_u64(struct cp_bus_writer *writer, const char *key, uint64_t value)
{
    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "t", value));
}

void cp_bus_put_u32(struct cp_bus_writer *writer, const char *key, uint32_t value)
{
    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "u", value));
}

void cp_bus_put_i32(struct cp_bus_writer *writer, const char *key, int32_t value)
{
    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "i", value));
}

void cp_bus_put_bool(struct cp_bus_writer *writer, const char *key, bool value)
{
    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "b", (int)value));
}

void cp_bus_put_task(struct cp_bus_writer *writer, const char *key, struct cp_task_id task)
{
    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sv}", key, "(ut)", (uint32_t)task.tid,
                                           task.start_ticks));
}

void cp_bus_put_cpus(struct cp_bus_writer *writer, const char *key, const struct cp_cpumask *cpus)
{
    _cleanup_free_ char *list = NULL;

    if (writer->error)
        return;
    list = cp_cpumask_to_list(cpus);
    if (!list)
        note(writer, -ENOMEM);
    else
        cp_bus_put_text(writer, key, list);
}

void cp_bus_put_share(struct cp_bus_writer *writer, const char *key, double value)
{
    double shown = isfinite(value) ? value : 0.0;

    if (!writer->error)
        note(writer, sd_bus_message_append(writer->message, "{sd}", key, shown));
}

void cp_bus_open_array(struct cp_bus_writer *writer, const char *contents)
{
    if (!writer->error)
        note(writer, sd_bus_message_open_container(writer->message, 'a', contents));
}

void cp_bus_open_entry(struct cp_bus_writer *writer, const char *key, const char *contents)
{
    char variant[16] = "a";

    if (writer->error)
        return;
    (void)strncat(variant, contents, sizeof(variant) - 2);
    note(writer, sd_bus_message_open_container(writer->message, 'e', "sv"));
    if (!writer->error)
        note(writer, sd_bus_message_append_basic(writer->message, 's', key));
    if (!writer->error)
        note(writer, sd_bus_message_open_container(writer->message, 'v', variant));
    cp_bus_open_array(writer, contents);
}

void cp_bus_close(struct cp_bus_writer *writer)
{
    if (!writer->error)
        note(writer, sd_bus_message_close_container(writer->message));
}

void cp_bus_close_entry(struct cp_bus_writer *writer)
{
    for (unsigned i = 0; i < 3; i++) /* array, variant, entry */
        cp_bus_close(writer);
}
