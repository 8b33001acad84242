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
	*c->work = 0;
	return on_group(c);
}

int gorun_barrier(gorun_comm comm)
{
	return on_group(&(struct call){.kind = BARRIER, .comm = comm});
}

int gorun_ibarrier(gorun_comm comm, gorun_work *work)
{
	return start(&(struct call){.kind = BARRIER, .comm = comm, .work = work});
}

int gorun_monitored_barrier(gorun_comm comm)
{
	return on_group(&(struct call){.kind = MONITORED_BARRIER, .comm = comm});
}

int gorun_all_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = ALL_REDUCE, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op});
}

int gorun_iall_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_REDUCE, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .work = work});
}

int gorun_scan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = SCAN, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op});
}

int gorun_iscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = SCAN, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .work = work});
}

int gorun_exscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = EXSCAN, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op});
}

int gorun_iexscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = EXSCAN, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .work = work});
}

int gorun_reduce_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = REDUCE_SCATTER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op});
}

int gorun_ireduce_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = REDUCE_SCATTER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .work = work});
}

int gorun_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, int root)
{
	return on_group(&(struct call){.kind = REDUCE, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .rank = root});
}

int gorun_ireduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, int root, gorun_work *work)
{
	return start(&(struct call){.kind = REDUCE, .comm = comm, .in = in, .out = out, .count = count, .type = type, .op = op, .rank = root, .work = work});
}

int gorun_broadcast(gorun_comm comm, void *buffer, size_t count, gorun_type type, int root)
{
	return on_group(&(struct call){.kind = BROADCAST, .comm = comm, .out = buffer, .count = count, .type = type, .rank = root});
}

int gorun_ibroadcast(gorun_comm comm, void *buffer, size_t count, gorun_type type, int root, gorun_work *work)
{
	return start(&(struct call){.kind = BROADCAST, .comm = comm, .out = buffer, .count = count, .type = type, .rank = root, .work = work});
}

int gorun_all_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type)
{
	return on_group(&(struct call){.kind = ALL_GATHER, .comm = comm, .in = in, .out = out, .count = count, .type = type});
}

int gorun_iall_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_GATHER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .work = work});
}

int gorun_all_to_all(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type)
{
	return on_group(&(struct call){.kind = ALL_TO_ALL, .comm = comm, .in = in, .out = out, .count = count, .type = type});
}

int gorun_iall_to_all(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_TO_ALL, .comm = comm, .in = in, .out = out, .count = count, .type = type, .work = work});
}

int gorun_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root)
{
	return on_group(&(struct call){.kind = GATHER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .rank = root});
}

int gorun_igather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root, gorun_work *work)
{
	return start(&(struct call){.kind = GATHER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .rank = root, .work = work});
}

int gorun_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root)
{
	return on_group(&(struct call){.kind = SCATTER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .rank = root});
}

int gorun_iscatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root, gorun_work *work)
{
	return start(&(struct call){.kind = SCATTER, .comm = comm, .in = in, .out = out, .count = count, .type = type, .rank = root, .work = work});
}

int gorun_all_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type)
{
	return on_group(&(struct call){.kind = ALL_GATHERV, .comm = comm, .in = in, .count = count, .list = out, .type = type});
}

int gorun_iall_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_GATHERV, .comm = comm, .in = in, .count = count, .list = out, .type = type, .work = work});
}

int gorun_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, int root)
{
	return on_group(&(struct call){.kind = GATHERV, .comm = comm, .in = in, .count = count, .list = out, .type = type, .rank = root});
}

int gorun_igatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, int root, gorun_work *work)
{
	return start(&(struct call){.kind = GATHERV, .comm = comm, .in = in, .count = count, .list = out, .type = type, .rank = root, .work = work});
}

int gorun_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, int root)
{
	return on_group(&(struct call){.kind = SCATTERV, .comm = comm, .list = in, .out = out, .count = count, .type = type, .rank = root});
}

int gorun_iscatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, int root, gorun_work *work)
{
	return start(&(struct call){.kind = SCATTERV, .comm = comm, .list = in, .out = out, .count = count, .type = type, .rank = root, .work = work});
}

int gorun_reduce_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = REDUCE_SCATTERV, .comm = comm, .list = in, .out = out, .count = count, .type = type, .op = op});
}

int gorun_ireduce_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = REDUCE_SCATTERV, .comm = comm, .list = in, .out = out, .count = count, .type = type, .op = op, .work = work});
}

int gorun_all_to_allv(gorun_comm comm, const void *in, const size_t *in_counts, void *out, const size_t *out_counts, gorun_type type)
{
	return on_group(&(struct call){.kind = ALL_TO_ALLV, .comm = comm, .in = in, .in_counts = in_counts, .out = out, .out_counts = out_counts, .type = type});
}

int gorun_iall_to_allv(gorun_comm comm, const void *in, const size_t *in_counts, void *out, const size_t *out_counts, gorun_type type, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_TO_ALLV, .comm = comm, .in = in, .in_counts = in_counts, .out = out, .out_counts = out_counts, .type = type, .work = work});
}

int gorun_all_reduce_coalesced(gorun_comm comm, const gorun_buffer *buffers, int n, gorun_type type, gorun_op op)
{
	return on_group(&(struct call){.kind = ALL_REDUCE_COALESCED, .comm = comm, .list = buffers, .n = n, .type = type, .op = op});
}

int gorun_iall_reduce_coalesced(gorun_comm comm, const gorun_buffer *buffers, int n, gorun_type type, gorun_op op, gorun_work *work)
{
	return start(&(struct call){.kind = ALL_REDUCE_COALESCED, .comm = comm, .list = buffers, .n = n, .type = type, .op = op, .work = work});
}

int gorun_send(gorun_comm comm, const void *buffer, size_t count, gorun_type type, int rank, int tag)
{
	return on_group(&(struct call){.kind = SEND, .comm = comm, .in = buffer, .count = count, .type = type, .rank = rank, .tag = tag});
}

int gorun_isend(gorun_comm comm, const void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_work *work)
{
	return start(&(struct call){.kind = SEND, .comm = comm, .in = buffer, .count = count, .type = type, .rank = rank, .tag = tag, .work = work});
}

int gorun_recv(gorun_comm comm, void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_status *status)
{
	return on_group(&(struct call){.kind = RECV, .comm = comm, .out = buffer, .count = count, .type = type, .rank = rank, .tag = tag, .status = status});
}

int gorun_irecv(gorun_comm comm, void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_work *work)
{
	return start(&(struct call){.kind = RECV, .comm = comm, .out = buffer, .count = count, .type = type, .rank = rank, .tag = tag, .work = work});
}

int gorun_probe(gorun_comm comm, int rank, int tag, gorun_status *status)
{
	return on_group(&(struct call){.kind = PROBE, .comm = comm, .rank = rank, .tag = tag, .status = status});
}

int gorun_iprobe(gorun_comm comm, int rank, int tag, int *found, gorun_status *status)
{
	if (found == NULL)
		return refuse("iprobe", "found is NULL");
	return on_group(&(struct call){.kind = IPROBE, .comm = comm, .rank = rank, .tag = tag, .found = found, .status = status});
}
