/* What the C functions pass to Go, and Go passes back. Not installed. */
#ifndef GORUN_CALL_H
#define GORUN_CALL_H

#include "gorun.h"

enum kind {
	BARRIER, MONITORED_BARRIER, ALL_REDUCE, REDUCE, SCAN, EXSCAN, BROADCAST, ALL_GATHER, GATHER, SCATTER, REDUCE_SCATTER,
	ALL_TO_ALL, ALL_GATHERV, GATHERV, SCATTERV, REDUCE_SCATTERV, ALL_TO_ALLV, ALL_TO_ALLW, ALL_REDUCE_COALESCED, SEND, RECV, PROBE, IPROBE
};

/* One call on a group. */
struct call {
	int kind, type, op, rank, tag, n;
	gorun_comm comm;
	const void *in;
	void *out;
	size_t count;
	const gorun_buffer *list, *out_list;
	const size_t *in_counts, *out_counts;
	gorun_work *work; /* NULL: the call blocks */
	gorun_status *status;
	int *found;
};

/* The descriptors of package comm, by their numbers: descriptors.Entry of Go. */
enum { MOST_DESCRIPTORS = 1 << 16 };
struct descriptor {
	uint64_t device, inode;
};
extern struct descriptor owned[MOST_DESCRIPTORS];

/* What the function of gorun_set_poll returns; 0 if there is none, or this is another thread, for which polls_here is 0, too. */
int poll_now(void);
int polls_here(void);
int has_poll(void);

/* The last error of the calling thread. */
gorun_error *last_error(void);

#endif
