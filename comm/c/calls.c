/* The calls on groups: each fills in a struct call, which Go carries out. */
#include "call.h"
#include "enter.h"

static int on_group(struct call *c)
{
	return may_enter() ? goOnGroup(c) : GORUN_ERR_FORKED;
}

static int start(struct call *c)
{
	if (c->work == NULL)
		return refuse("work", "work is NULL");
	return on_group(c);
}

#define ALL(...) __VA_ARGS__
#define BLOCKING(name, kind_of, parameters, ...) \
	int gorun_##name(gorun_comm comm ALL parameters) \
	{ \
		return on_group(&(struct call){.kind = kind_of, .comm = comm, __VA_ARGS__}); \
	}
#define STARTED(name, kind_of, parameters, ...) \
	int gorun_i##name(gorun_comm comm ALL parameters, gorun_work *work) \
	{ \
		return start(&(struct call){.kind = kind_of, .comm = comm, .work = work, __VA_ARGS__}); \
	}
#define BOTH(...) BLOCKING(__VA_ARGS__) STARTED(__VA_ARGS__)

/* Groups of parameters, and the fields that they fill in. */
#define IO , const void *in, void *out, size_t count, gorun_type type
#define LIST_OUT , const gorun_buffer *in, void *out, size_t count, gorun_type type
#define IN_LIST , const void *in, size_t count, const gorun_buffer *out, gorun_type type
#define FROM , const void *in, size_t count, gorun_type type
#define TO , void *out, size_t count, gorun_type type
#define BUFFERS , const gorun_buffer *buffers, int n, gorun_type type
#define V , const void *in, const size_t *in_counts, void *out, const size_t *out_counts, gorun_type type
#define W , const gorun_buffer *in, const gorun_buffer *out, gorun_type type
#define OP , gorun_op op
#define ROOT , int root
#define AT , int rank, int tag
#define SET_IO .in = in, .out = out, .count = count, .type = type
#define SET_LIST_OUT .list = in, .out = out, .count = count, .type = type
#define SET_IN_LIST .in = in, .count = count, .list = out, .type = type
#define SET_FROM .in = in, .count = count, .type = type
#define SET_TO .out = out, .count = count, .type = type
#define SET_BUFFERS .list = buffers, .n = n, .type = type
#define SET_V .in = in, .in_counts = in_counts, .out = out, .out_counts = out_counts, .type = type
#define SET_W .list = in, .out_list = out, .type = type
#define SET_AT .rank = rank, .tag = tag

BOTH(barrier, BARRIER, (), .n = 0)
BLOCKING(monitored_barrier, MONITORED_BARRIER, (), .n = 0)
BOTH(all_reduce, ALL_REDUCE, (IO OP), SET_IO, .op = op)
BOTH(reduce, REDUCE, (IO OP ROOT), SET_IO, .op = op, .rank = root)
BOTH(scan, SCAN, (IO OP), SET_IO, .op = op)
BOTH(exscan, EXSCAN, (IO OP), SET_IO, .op = op)
BOTH(broadcast, BROADCAST, (TO ROOT), SET_TO, .rank = root)
BOTH(all_gather, ALL_GATHER, (IO), SET_IO)
BOTH(gather, GATHER, (IO ROOT), SET_IO, .rank = root)
BOTH(scatter, SCATTER, (IO ROOT), SET_IO, .rank = root)
BOTH(reduce_scatter, REDUCE_SCATTER, (IO OP), SET_IO, .op = op)
BOTH(all_to_all, ALL_TO_ALL, (IO), SET_IO)
BOTH(all_gatherv, ALL_GATHERV, (IN_LIST), SET_IN_LIST)
BOTH(gatherv, GATHERV, (IN_LIST ROOT), SET_IN_LIST, .rank = root)
BOTH(scatterv, SCATTERV, (LIST_OUT ROOT), SET_LIST_OUT, .rank = root)
BOTH(reduce_scatterv, REDUCE_SCATTERV, (LIST_OUT OP), SET_LIST_OUT, .op = op)
BOTH(all_to_allv, ALL_TO_ALLV, (V), SET_V)
BOTH(all_to_allw, ALL_TO_ALLW, (W), SET_W)
BOTH(all_reduce_coalesced, ALL_REDUCE_COALESCED, (BUFFERS OP), SET_BUFFERS, .op = op)
BOTH(send, SEND, (FROM AT), SET_FROM, SET_AT)
BLOCKING(recv, RECV, (TO AT, gorun_status *status), SET_TO, SET_AT, .status = status)
STARTED(recv, RECV, (TO AT), SET_TO, SET_AT)
BLOCKING(probe, PROBE, (AT, gorun_status *status), SET_AT, .status = status)

int gorun_iprobe(gorun_comm comm, int rank, int tag, int *found, gorun_status *status)
{
	if (found == NULL)
		return refuse("iprobe", "found is NULL");
	return on_group(&(struct call){.kind = IPROBE, .comm = comm, SET_AT, .found = found, .status = status});
}
