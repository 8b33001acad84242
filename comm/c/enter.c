/* Errors, forks, and the calls that are not on a group. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "call.h"
#include "enter.h"

/* A library that is loaded late gets hardly any memory for thread-local variables, so errors are elsewhere. */
static pthread_key_t errors;
static pthread_once_t made_errors = PTHREAD_ONCE_INIT;

static void make_errors(void) { pthread_key_create(&errors, free); }

gorun_error *last_error(void)
{
	static gorun_error shared; /* of threads for which there is no memory */
	pthread_once(&made_errors, make_errors);
	gorun_error *last = pthread_getspecific(errors);
	if (last != NULL)
		return last;
	last = calloc(1, sizeof *last);
	if (last == NULL || pthread_setspecific(errors, last) != 0) {
		free(last);
		return &shared;
	}
	last->rank = -1;
	return last;
}

static int fail(int code, const char *op, const char *what)
{
	gorun_error *last = last_error();
	memset(last, 0, sizeof *last);
	last->code = code;
	last->rank = -1;
	snprintf(last->op, sizeof last->op, "%s", op);
	snprintf(last->text, sizeof last->text, "gorun%s%s: %s", *op ? "_" : "", op, what);
	return code;
}

int refuse(const char *op, const char *what) { return fail(GORUN_ERR_ARGUMENT, op, what); }

/* Go's other threads are not in a forked child, so nothing there may enter Go. */
static volatile int forked;

/* A child closes what is in this list, and still the same file. */
struct descriptor owned[MOST_DESCRIPTORS];

static void in_child(void)
{
	if (forked)
		return;
	forked = 1;
	struct stat now;
	for (int fd = 0; fd < MOST_DESCRIPTORS; fd++)
		if (owned[fd].inode != 0 && fstat(fd, &now) == 0 && now.st_dev == owned[fd].device && now.st_ino == owned[fd].inode)
			close(fd);
}

/* Go's runtime begins when the library is loaded, so forks before gorun_init count. */
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

int may_enter(void)
{
	if (!forked)
		return 1;
	fail(GORUN_ERR_FORKED, "", "this process has been forked from one that uses gorun: only that one can");
	return 0;
}

int gorun_abi(void) { return GORUN_ABI; }

int gorun_last_error(gorun_error *error)
{
	if (error == NULL)
		return GORUN_ERR_ARGUMENT;
	*error = *last_error();
	return GORUN_SUCCESS;
}

const char *gorun_version(void) { return may_enter() ? goVersion() : ""; }

int gorun_exit_code(void) { return forked ? 1 : goExitCode(); }

static const gorun_options no_options;

int gorun_init(const gorun_options *options, gorun_comm *world)
{
	NEEDS("init", world);
	return ENTER(goInit((gorun_options *)(options ? options : &no_options), NULL, NULL, world));
}

int gorun_init_round_store(const gorun_options *options, gorun_open_function open, void *context, gorun_comm *world)
{
	NEEDS("init_round_store", open);
	NEEDS("init_round_store", world);
	return ENTER(goInit((gorun_options *)(options ? options : &no_options), open, context, world));
}

int gorun_rejoin(gorun_comm *world)
{
	NEEDS("rejoin", world);
	return ENTER(goRejoin(world));
}

int gorun_close(gorun_comm comm) { return ENTER(goClose(comm)); }

int gorun_abort(gorun_comm comm, const char *reason) { return ENTER(goAbort(comm, (char *)(reason ? reason : ""))); }

int gorun_rank(gorun_comm comm, int *rank)
{
	NEEDS("rank", rank);
	return ENTER(goRank(comm, rank, NULL, NULL));
}

int gorun_size(gorun_comm comm, int *size)
{
	NEEDS("size", size);
	return ENTER(goRank(comm, NULL, size, NULL));
}

int gorun_world_ranks(gorun_comm comm, int *ranks)
{
	NEEDS("world_ranks", ranks);
	return ENTER(goRank(comm, NULL, NULL, ranks));
}

int gorun_comm_create(gorun_comm parent, const int *ranks, int n, gorun_comm *comm)
{
	NEEDS("comm_create", ranks);
	NEEDS("comm_create", comm);
	return ENTER(goCreate(parent, (int *)ranks, n, NULL, comm));
}

int gorun_comm_create_group(gorun_comm parent, const int *ranks, int n, const char *name, gorun_comm *comm)
{
	NEEDS("comm_create_group", ranks);
	NEEDS("comm_create_group", name);
	NEEDS("comm_create_group", comm);
	return ENTER(goCreate(parent, (int *)ranks, n, (char *)name, comm));
}

int gorun_comm_split(gorun_comm parent, int color, int key, gorun_comm *comm)
{
	NEEDS("comm_split", comm);
	return ENTER(goSplit(parent, color, key, comm));
}

int gorun_op_create(gorun_op_function function, void *context, const char *name, size_t block, int commutative, gorun_op *op)
{
	NEEDS("op_create", function);
	NEEDS("op_create", name);
	NEEDS("op_create", op);
	return ENTER(goOpCreate(function, context, (char *)name, block, commutative, op));
}

int gorun_op_free(gorun_op op) { return ENTER(goOpFree(op)); }

static int (*poll)(void);
static pthread_t poller;

int has_poll(void) { return poll != NULL; }

static int in_poll; /* a call that the function makes is not polled: it need not be able to call itself */

int polls_here(void) { return poll != NULL && pthread_equal(poller, pthread_self()) && !in_poll; }

int poll_now(void)
{
	if (!polls_here())
		return 0;
	in_poll = 1;
	int stop = poll();
	in_poll = 0;
	return stop;
}

int gorun_set_poll(int (*function)(void))
{
	poller = pthread_self();
	poll = function;
	return GORUN_SUCCESS;
}

int gorun_wait(gorun_work work, gorun_status *status) { return ENTER(goWait(work, -1, NULL, status)); }

int gorun_wait_for(gorun_work work, double seconds, int *done, gorun_status *status)
{
	NEEDS("wait_for", done);
	return ENTER(goWait(work, seconds < 0 ? 0 : seconds, done, status));
}

int gorun_test(gorun_work work, int *done, gorun_status *status)
{
	NEEDS("test", done);
	return ENTER(goWait(work, 0, done, status));
}

int gorun_alloc(gorun_comm comm, size_t bytes, void **memory)
{
	NEEDS("alloc", memory);
	return ENTER(goAlloc(comm, bytes, memory));
}

int gorun_free(void *memory) { return memory == NULL ? GORUN_SUCCESS : ENTER(goFree(memory)); }

int gorun_store_tcp(const char *address, const char *token, double timeout, gorun_store *store)
{
	NEEDS("store_tcp", address);
	NEEDS("store_tcp", store);
	return ENTER(goStoreTCP((char *)address, (char *)(token ? token : ""), timeout, store));
}

int gorun_store_file(const char *path, gorun_store *store)
{
	NEEDS("store_file", path);
	NEEDS("store_file", store);
	return ENTER(goStoreFile((char *)path, store));
}

int gorun_store_custom(const gorun_store_functions *functions, gorun_store *store)
{
	NEEDS("store_custom", functions);
	NEEDS("store_custom", store);
	return ENTER(goStoreCustom((gorun_store_functions *)functions, store));
}

int gorun_store_close(gorun_store store) { return ENTER(goStoreClose(store)); }

int gorun_store_set(gorun_store store, const char *key, const void *value, size_t length)
{
	NEEDS("store_set", key);
	return ENTER(goStoreSet(store, (char *)key, (void *)value, length));
}

int gorun_store_get(gorun_store store, const char *key, double timeout, void *value, size_t room, size_t *length)
{
	NEEDS("store_get", key);
	NEEDS("store_get", length);
	return ENTER(goStoreGet(store, (char *)key, timeout, value, room, length));
}

int gorun_store_add(gorun_store store, const char *key, int64_t amount, int64_t *sum)
{
	NEEDS("store_add", key);
	return ENTER(goStoreAdd(store, (char *)key, amount, sum));
}

int gorun_store_wait(gorun_store store, const char *const *keys, int n, double timeout)
{
	NEEDS("store_wait", keys);
	return ENTER(goStoreWait(store, (char **)keys, n, timeout));
}

int gorun_store_delete(gorun_store store, const char *key, int *was_set)
{
	NEEDS("store_delete", key);
	return ENTER(goStoreDelete(store, (char *)key, was_set));
}

int gorun_flight(char *json, size_t room, size_t *length)
{
	NEEDS("flight", length);
	return ENTER(goFlight(json, room, length));
}

int gorun_explain(gorun_comm comm, const char *op, size_t bytes, char *text, size_t room, size_t *length)
{
	NEEDS("explain", op);
	NEEDS("explain", length);
	return ENTER(goExplain(comm, (char *)op, bytes, text, room, length));
}
