/*
 * gorun.h: package comm of gorun for C, and for every language that calls C.
 *
 * Functions return 0, or a negative code of gorun_code. Then gorun_last_error says more about the last error of the
 * calling thread. Ranks in calls are ranks in the group that you pass; ranks in errors are ranks in the world. Counts
 * are in elements. Buffers need not be aligned, and may be any memory of the process. A buffer belongs to the library
 * until the call returns, or until the work that it has started has ended. Where a call takes an input and an output,
 * they may be the same buffer, or must not overlap.
 *
 * Calls may come from any thread. All members of a group make its collectives in the same order. Loading the library
 * starts threads of Go's runtime, and handlers of SIGPIPE, SIGURG and the signals of crashes. Nothing else happens before
 * gorun_init. In a child that is forked once the library is loaded, every call fails, and its descriptors are closed.
 *
 * Names that begin with gorun_i start an operation. gorun_wait or a gorun_test that finds it done ends its work.
 */
#ifndef GORUN_H
#define GORUN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It is also in the library's name, libgorun.so.1. */
#define GORUN_ABI 1

/* Handles. 0 is none. */
typedef uint64_t gorun_comm;
typedef uint64_t gorun_work;
typedef uint64_t gorun_store;
typedef uint64_t gorun_state;

#define GORUN_ANY_SOURCE (-1)
#define GORUN_ANY_TAG (-1)

enum gorun_code {
	GORUN_SUCCESS = 0,
	GORUN_ERR_ARGUMENT = -1,      /* the call is wrong in itself; nothing was sent */
	GORUN_ERR_PEER = -2,          /* another rank has died, left or does not answer */
	GORUN_ERR_ABORTED = -3,       /* a member has aborted the group */
	GORUN_ERR_MISSING_RANKS = -4, /* ranks have not come */
	GORUN_ERR_MISMATCH = -5,      /* ranks have made different calls */
	GORUN_ERR_DEADLOCK = -6,      /* ranks wait for each other */
	GORUN_ERR_TRUNCATED = -7,     /* a message is longer than its buffer */
	GORUN_ERR_CLOSED = -8,        /* this rank has closed the group or the store */
	GORUN_ERR_ROUND_OVER = -9,    /* gorun forms another round: call gorun_rejoin */
	GORUN_ERR_NO_REJOIN = -10,    /* workers do not outlive a round here */
	GORUN_ERR_MISSING_KEYS = -11, /* nobody has set a key of a store in time */
	GORUN_ERR_FORKED = -12,       /* the process has been forked from one that has loaded the library */
	GORUN_ERR_INTERRUPTED = -13,  /* the function of gorun_set_poll has ended the call */
	GORUN_ERR_OTHER = -14,
	GORUN_ERR_FUNCTION = -15      /* a function that you have passed has failed */
};

typedef struct gorun_error {
	int code;           /* of gorun_code */
	int rank;           /* world rank at fault; -1: none is known */
	int exit_code;      /* how its process has ended, if signal is 0; or what a function that you have passed has returned */
	int signal;         /* the signal that has ended it; 0: none is known */
	int has_died;       /* exit_code and signal are known */
	uint64_t seq;       /* number of the call among the collectives of its group; 0: it has none */
	char op[32];        /* the call, such as AllReduce */
	char text[4096];    /* one line; it ends with a zero byte */
} gorun_error;

typedef enum gorun_type {
	GORUN_INT8 = 1,
	GORUN_INT16,
	GORUN_INT32,
	GORUN_INT64,
	GORUN_UINT8,
	GORUN_UINT16,
	GORUN_UINT32,
	GORUN_UINT64,
	GORUN_FLOAT32,
	GORUN_FLOAT64,
	GORUN_COMPLEX64,
	GORUN_COMPLEX128,
	GORUN_FLOAT16,
	GORUN_BFLOAT16
} gorun_type;

/* Reductions. GORUN_AVG divides the sum by the number of ranks. GORUN_MINLOC and GORUN_MAXLOC combine pairs of
 * elements: a value and its place. */
typedef enum gorun_op {
	GORUN_SUM = 1,
	GORUN_PROD,
	GORUN_MIN,
	GORUN_MAX,
	GORUN_BAND,
	GORUN_BOR,
	GORUN_BXOR,
	GORUN_LAND,
	GORUN_LOR,
	GORUN_LXOR,
	GORUN_MINLOC,
	GORUN_MAXLOC,
	GORUN_AVG,
	GORUN_OP_OWN = 0x40000000 /* what gorun_op_create makes is greater */
} gorun_op;

/* What a receive has received. */
typedef struct gorun_status {
	int source;   /* rank in the group */
	int tag;
	size_t count; /* elements */
} gorun_status;

/* One buffer of a list. */
typedef struct gorun_buffer {
	void *data;
	size_t count; /* elements */
} gorun_buffer;

/* A store that is elsewhere, such as another library's: ranks can meet in it. Any thread calls these functions, with
 * context, until the store has been closed and calls on it have ended. They return 0 or a code of gorun_code. length is that
 * of the whole value, and room may be less. get waits until the key is there, and returns GORUN_ERR_MISSING_KEYS after so
 * many seconds: it is called again. compare_and_swap sets the key to value if it has old, or if it is missing and old is
 * empty, and its now is what the key has afterwards. */
typedef struct gorun_store_functions {
	void *context;
	int (*set)(void *context, const char *key, const void *value, size_t length);
	int (*get)(void *context, const char *key, double seconds, void *value, size_t room, size_t *length);
	int (*add)(void *context, const char *key, int64_t amount, int64_t *sum);
	int (*compare_and_swap)(void *context, const char *key, const void *old, size_t old_length, const void *value,
		size_t value_length, void *now, size_t room, size_t *now_length);
	int (*delete_key)(void *context, const char *key, int *was_set);
} gorun_store_functions;

/* Combines elements: sets each of count elements of acc to acc op in. Any thread calls it, with the context of gorun_op_create.
 * If it does not return 0, the call fails, and so does its group. */
typedef int (*gorun_op_function)(void *context, void *acc, const void *in, size_t count, gorun_type type);

/* Opens the store in which the ranks of a round meet. The library closes it. */
typedef int (*gorun_open_function)(void *context, gorun_store *store);

/* How to join; zeros are the defaults. */
typedef struct gorun_options {
	const char *init_method; /* env://, tcp://host:port or file:///path; NULL: env:// */
	int rank, size;          /* size 0: they are in the environment */
	gorun_store store;       /* where ranks meet instead */
	const char *transport;   /* auto, shm or tcp */
	const char *token;       /* NULL: GORUN_TOKEN */
	double timeout;          /* seconds of one operation, and of gorun_init; 0: 30 minutes */
	int quiet;               /* log nothing to stderr */
	const char *binding;     /* what runs only on the processors that gorun sets aside for this rank: auto (NULL), all
	                            threads; call, a thread in a blocking call; or none */
} gorun_options;

/* About the library and the last error. */
int gorun_abi(void);
const char *gorun_version(void);
int gorun_last_error(gorun_error *error); /* of the calling thread */
int gorun_exit_code(void); /* with which the process should end because of its last error; gorun learns which rank is at fault */

/* Before gorun_init: calls of this thread that wait for long call poll every 100 ms. If it does not return 0, the call
 * fails, and so does its group; in gorun_wait_for, only the wait ends. Calls that poll makes do not call it. */
int gorun_set_poll(int (*poll)(void));

/* The world. gorun_init reads the environment as it is in C at that time. options may be NULL. */
int gorun_init(const gorun_options *options, gorun_comm *world);
/* Is gorun_init, but ranks meet in the store that open returns. Rank and size come from the environment. gorun_rejoin calls
 * open again, once the environment is that of the next round. */
int gorun_init_round_store(const gorun_options *options, gorun_open_function open, void *context, gorun_comm *world);
int gorun_rejoin(gorun_comm *world); /* the world of the next round; the one before is closed */
int gorun_close(gorun_comm comm);    /* closing a world closes its groups */
int gorun_abort(gorun_comm comm, const char *reason);

/* Groups. */
int gorun_rank(gorun_comm comm, int *rank);
int gorun_size(gorun_comm comm, int *size);
int gorun_world_ranks(gorun_comm comm, int *ranks); /* as many as the group has */
int gorun_comm_create(gorun_comm parent, const int *ranks, int n, gorun_comm *comm); /* all of parent call it; 0 if not a member */
int gorun_comm_create_group(gorun_comm parent, const int *ranks, int n, const char *name, gorun_comm *comm); /* members alone */
int gorun_comm_split(gorun_comm parent, int color, int key, gorun_comm *comm); /* negative color: 0 */

/* A reduction of your own. It is associative, and has the same name on all ranks. If it is not commutative, it is applied in order
 * of rank. block elements make one value. It may be freed once no call uses it. */
int gorun_op_create(gorun_op_function function, void *context, const char *name, size_t block, int commutative, gorun_op *op);
int gorun_op_free(gorun_op op);

/* Collectives. */
int gorun_barrier(gorun_comm comm);
int gorun_monitored_barrier(gorun_comm comm);
int gorun_all_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op);
int gorun_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, int root);
int gorun_scan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op);
int gorun_exscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op);
int gorun_broadcast(gorun_comm comm, void *buffer, size_t count, gorun_type type, int root);
/* count is what one rank gives to, or takes from, one other rank. The other buffer is as many times as long as the
 * group has ranks. */
int gorun_all_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type);
int gorun_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root);
int gorun_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root);
int gorun_reduce_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op);
int gorun_all_to_all(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type);
/* Lists have a buffer for each rank. */
int gorun_all_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type);
int gorun_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, int root);
int gorun_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, int root);
int gorun_reduce_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, gorun_op op);
int gorun_all_to_allv(gorun_comm comm, const void *in, const size_t *in_counts, void *out, const size_t *out_counts, gorun_type type);
int gorun_all_to_allw(gorun_comm comm, const gorun_buffer *in, const gorun_buffer *out, gorun_type type); /* others may call all_to_allv */
/* n buffers, which are combined as one. */
int gorun_all_reduce_coalesced(gorun_comm comm, const gorun_buffer *buffers, int n, gorun_type type, gorun_op op);

/* The same, started. */
int gorun_ibarrier(gorun_comm comm, gorun_work *work);
int gorun_iall_reduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work);
int gorun_ireduce(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, int root, gorun_work *work);
int gorun_iscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work);
int gorun_iexscan(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work);
int gorun_ibroadcast(gorun_comm comm, void *buffer, size_t count, gorun_type type, int root, gorun_work *work);
int gorun_iall_gather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_work *work);
int gorun_igather(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root, gorun_work *work);
int gorun_iscatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, int root, gorun_work *work);
int gorun_ireduce_scatter(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work);
int gorun_iall_to_all(gorun_comm comm, const void *in, void *out, size_t count, gorun_type type, gorun_work *work);
int gorun_iall_gatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, gorun_work *work);
int gorun_igatherv(gorun_comm comm, const void *in, size_t count, const gorun_buffer *out, gorun_type type, int root, gorun_work *work);
int gorun_iscatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, int root, gorun_work *work);
int gorun_ireduce_scatterv(gorun_comm comm, const gorun_buffer *in, void *out, size_t count, gorun_type type, gorun_op op, gorun_work *work);
int gorun_iall_to_allv(gorun_comm comm, const void *in, const size_t *in_counts, void *out, const size_t *out_counts, gorun_type type, gorun_work *work);
int gorun_iall_to_allw(gorun_comm comm, const gorun_buffer *in, const gorun_buffer *out, gorun_type type, gorun_work *work);
int gorun_iall_reduce_coalesced(gorun_comm comm, const gorun_buffer *buffers, int n, gorun_type type, gorun_op op, gorun_work *work);

/* Messages. status may be NULL. */
int gorun_send(gorun_comm comm, const void *buffer, size_t count, gorun_type type, int rank, int tag);
int gorun_recv(gorun_comm comm, void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_status *status);
int gorun_isend(gorun_comm comm, const void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_work *work);
int gorun_irecv(gorun_comm comm, void *buffer, size_t count, gorun_type type, int rank, int tag, gorun_work *work);
int gorun_probe(gorun_comm comm, int rank, int tag, gorun_status *status);
int gorun_iprobe(gorun_comm comm, int rank, int tag, int *found, gorun_status *status);

/* Work. status may be NULL. */
int gorun_wait(gorun_work work, gorun_status *status);
int gorun_test(gorun_work work, int *done, gorun_status *status);
int gorun_wait_for(gorun_work work, double seconds, int *done, gorun_status *status); /* the operation goes on if it is not done */

/* Memory that the ranks of a machine share: collectives on it copy nothing. It stays until gorun_free, also if the
 * world has been closed. */
int gorun_alloc(gorun_comm comm, size_t bytes, void **memory);
int gorun_free(void *memory);

/* The store in which ranks can leave each other small values. Keys end with a zero byte. */
int gorun_store_tcp(const char *address, const char *token, double timeout, gorun_store *store);
int gorun_store_file(const char *path, gorun_store *store);
int gorun_store_custom(const gorun_store_functions *functions, gorun_store *store); /* which are copied */
int gorun_store_close(gorun_store store);
int gorun_store_set(gorun_store store, const char *key, const void *value, size_t length);
int gorun_store_get(gorun_store store, const char *key, double timeout, void *value, size_t room, size_t *length);
int gorun_store_add(gorun_store store, const char *key, int64_t amount, int64_t *sum);
int gorun_store_wait(gorun_store store, const char *const *keys, int n, double timeout);
int gorun_store_delete(gorun_store store, const char *key, int *was_set);

/* A state that outlives ranks: package elastic of Go, whose ranks can be in the same job. It has contents that are the same on all
 * ranks, and parts, each of which belongs to one rank. A part has a name that no other one has; what is shared has the part name "".
 *
 * A commit is a copy of them. To make one, call gorun_state_take for what is shared and for each part, fill in all bytes of their
 * entries' memory, and call gorun_state_commit, on all ranks at the same point of the program. Then parts are sent to another rank; the next
 * gorun_state_take, and gorun_state_wait, wait until they have arrived. gorun_state_sync brings the ranks of a new world to the newest
 * commit of which everything is still there, and gorun_state_entries returns it. Before its first world, a rank takes its parts, and
 * rank 0 what is shared, and does not commit: if no rank has a commit, gorun_state_sync makes the first one of that. run says which
 * loop of the program over worlds this is, from 1: all ranks have the same. gorun_state_entries sets n to how many entries there
 * are, 0 without a commit; room may be less.
 *
 * Addresses are good until the next gorun_state_take, gorun_state_sync or gorun_state_free; those of names and trees until the
 * next call with this state. */
typedef struct gorun_entry {
	const char *name;
	const void *tree;   /* what you need to know besides the contents; {"value": V} or {"leaf": [type, shape]} as CBOR for Go */
	size_t tree_length; /* in bytes */
	void *memory;       /* the contents; gorun_state_take sets it */
	size_t size;        /* of the contents, in bytes */
} gorun_entry;

/* A variable that is shared: it has to be the same on all ranks. Fields are in order of their names. */
typedef struct gorun_field {
	const char *name;
	const char *type;   /* of an array: its elements and shape, such as "float32 × 10"; "a value" fits all that is no array */
	int is_array;
} gorun_field;

int gorun_state_create(const char *const *parts, int n, gorun_state *state); /* the names of this rank's parts */
int gorun_state_free(gorun_state state);
int gorun_state_take(gorun_state state, const char *part, gorun_entry *entries, int n);
int gorun_state_commit(gorun_state state);
int gorun_state_wait(gorun_state state);
int gorun_state_sync(gorun_state state, gorun_comm world, int run, const gorun_field *fields, int n);
int gorun_state_entries(gorun_state state, const char *part, gorun_entry *entries, int room, int *n);

/* What goes on. The texts end with a zero byte; length is what they need, and room may be less. */
int gorun_flight(char *json, size_t room, size_t *length); /* the flight recorders of all groups, one a line */
int gorun_explain(gorun_comm comm, const char *op, size_t bytes, char *text, size_t room, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
