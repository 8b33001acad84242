#include <gorun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gorun_comm world;
static int rank, size;

/* must ends the program unless a call has succeeded. */
#define must(call) must_at(call, #call, __LINE__)
static inline void must_at(int code, const char *what, int line)
{
	gorun_error e;
	if (code == GORUN_SUCCESS)
		return;
	gorun_last_error(&e);
	printf("rank %d, line %d: %s: %d, %s\n", rank, line, what, code, e.text);
	exit(1);
}

/* want ends the program unless the condition holds. */
#define want(condition) want_at(condition, #condition, __LINE__)
static inline void want_at(int holds, const char *what, int line)
{
	if (holds)
		return;
	printf("rank %d, line %d: it does not hold that %s\n", rank, line, what);
	exit(1);
}

/* wants_error ends the program unless a call has failed with the code, and with a text that has a part. */
#define wants_error(call, code, part) wants_error_at(call, code, part, #call, __LINE__)
static inline void wants_error_at(int got, int code, const char *part, const char *what, int line)
{
	gorun_error e;
	gorun_last_error(&e);
	if (got == code && e.code == code && strstr(e.text, part))
		return;
	printf("rank %d, line %d: %s: %d, %s; want %d, %s\n", rank, line, what, got, e.text, code, part);
	exit(1);
}

static inline void begin(void)
{
	want(gorun_abi() == GORUN_ABI);
	must(gorun_init(&(gorun_options){.transport = getenv("TRANSPORT")}, &world));
	must(gorun_rank(world, &rank));
	must(gorun_size(world, &size));
}

static inline int end(void)
{
	must(gorun_barrier(world));
	must(gorun_close(world));
	return 0;
}
