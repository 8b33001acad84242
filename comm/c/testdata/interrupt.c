/* A function that waits calls another one, which ends it. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t signals, polls, armed;

static void note(int sig)
{
	(void)sig;
	signals++;
}

static int poll_signals(void)
{
	if (!armed) /* gorun_init may wait for long */
		return 0;
	if (++polls == 3)
		raise(SIGINT);
	return signals;
}

int main(void)
{
	int value = 0;
	if (strcmp(getenv("RANK"), "0") == 0) {
		signal(SIGINT, note);
		must(gorun_set_poll(poll_signals));
	}
	begin();
	armed = 1;
	if (rank == 0) {
		wants_error(gorun_recv(world, &value, 1, GORUN_INT32, 1, 0, NULL), GORUN_ERR_INTERRUPTED, "interrupted");
		want(polls == 3);
		signals = polls = 0; /* the group goes on: nobody had sent anything */
		must(gorun_send(world, &value, 1, GORUN_INT32, 1, 0));
		wants_error(gorun_barrier(world), GORUN_ERR_INTERRUPTED, "interrupted");
		want(polls == 3);
	} else {
		must(gorun_recv(world, &value, 1, GORUN_INT32, 0, 0, NULL));
		sleep(1);
		wants_error(gorun_barrier(world), GORUN_ERR_ABORTED, "rank 0 aborted the group: interrupted");
	}
	printf("interrupted\n");
	return 0;
}
