/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * coplacectl explain: why is this thread here? One call for the thread; a process whose leader has
 * no pair is answered with the pairs of its other threads.
 */
#include "bus/client.h"
#include "ctl/ctl.h"
#include "ctl/views.h"

#include <errno.h>
#include <limits.h>

/* Of all pairs those with a thread of the process; 0 or an exit status. */
static int fetch_pairs_of(sd_bus *bus, uint64_t pid, json_t **ret_pairs)
{
    _cleanup_json_ json_t *pairs = NULL;
    _cleanup_json_ json_t *own = json_array();
    int r = cp_ctl_fetch_pairs(bus, CP_CTL_LIMIT_MAX, &pairs);

    if (r != 0)
        return r;
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        json_t *pair = json_array_get(pairs, i);

        if (cp_json_count(pair, "pid_a") != pid && cp_json_count(pair, "pid_b") != pid)
            continue;
        if (json_array_append(own, pair) < 0)
            return cp_ctl_viewed(-ENOMEM);
    }
    *ret_pairs = TAKE_PTR(own);
    return 0;
}

static int fetch(sd_bus *bus, uint32_t tid, json_t **ret_explanation)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
    _cleanup_json_ json_t *explanation = NULL;
    json_t *pairs = NULL;
    struct cp_error error = {0};
    int r = cp_client_call(bus, "ExplainTask", 0, &reply, &error, "(ut)", tid, (uint64_t)0);

    if (r != 0)
        return cp_ctl_failed(r, &error);
    r = cp_ctl_read(reply, &explanation);
    if (r != 0)
        return r;
    if (!cp_json_filled(explanation, "pair")) {
        r = fetch_pairs_of(bus, cp_json_count(explanation, "pid"), &pairs);
        if (r != 0)
            return r;
        if (json_object_set_new(explanation, "process_pairs", pairs) < 0)
            return cp_ctl_viewed(-ENOMEM);
    }
    *ret_explanation = TAKE_PTR(explanation);
    return 0;
}

static int run_explain(const struct cp_ctl *ctl, const struct cp_arguments *arguments)
{
    _cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
    _cleanup_json_ json_t *explanation = NULL;
    unsigned long long tid;
    int r =
        cp_ctl_number(&cp_verb_explain, arguments->operands[0], "a PID or TID", 1, INT_MAX, &tid);

    if (r == 0)
        r = cp_ctl_open(ctl, &bus);
    if (r == 0)
        r = fetch(bus, (uint32_t)tid, &explanation);
    if (r != 0)
        return r;
    if (ctl->json)
        return cp_ctl_put_json(TAKE_PTR(explanation), false);
    return cp_ctl_viewed(cp_view_explanation(&ctl->view, explanation));
}

const struct cp_verb cp_verb_explain = {
    .name = "explain",
    .synopsis = "PID|TID",
    .summary = "why is this thread where it is, and did it help?",
    .description =
        "Tells of one thread: whom it hands work to and how often, their relation and why, what\n"
        "each level would cost, the decision with what was predicted and observed, or the exact\n"
        "reason why nothing is done. A PID means the first thread of the process; if that has no\n"
        "pair, the pairs of the other threads are listed.\n",
    .example = "coplacectl explain \"$(pidof redis-server)\"",
    .min_operands = 1,
    .max_operands = 1,
    .run = run_explain,
};
