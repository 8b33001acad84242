/* Calls on states. They check pointers, and state.go does the rest. */
#include "call.h"
#include "enter.h"

int gorun_state_create(const char *const *parts, int n, gorun_state *state)
{
	NEEDS("state_create", state);
	if (n > 0)
		NEEDS("state_create", parts);
	return ENTER(goStateCreate((char **)parts, n, state));
}

int gorun_state_free(gorun_state state) { return ENTER(goStateFree(state)); }

int gorun_state_take(gorun_state state, const char *part, gorun_entry *entries, int n)
{
	NEEDS("state_take", part);
	NEEDS("state_take", entries);
	return ENTER(goStateTake(state, (char *)part, entries, n));
}

int gorun_state_commit(gorun_state state) { return ENTER(goStateCommit(state)); }

int gorun_state_wait(gorun_state state) { return ENTER(goStateWait(state)); }

int gorun_state_sync(gorun_state state, gorun_comm world, int run, const gorun_field *fields, int n)
{
	NEEDS("state_sync", fields);
	return ENTER(goStateSync(state, world, run, (gorun_field *)fields, n));
}

int gorun_state_entries(gorun_state state, const char *part, gorun_entry *entries, int room, int *n)
{
	NEEDS("state_entries", part);
	NEEDS("state_entries", n);
	return ENTER(goStateEntries(state, (char *)part, entries, entries ? room : 0, n));
}
