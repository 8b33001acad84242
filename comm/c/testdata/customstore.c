/* Ranks that meet in a store of the program: a folder with a file for each key. */
#include "check.h"
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static char folder[256];

static int locked(void)
{
	char path[300];
	snprintf(path, sizeof path, "%s/.lock", folder);
	int fd = open(path, O_CREAT | O_RDWR, 0600);
	return flock(fd, LOCK_EX) == 0 ? fd : -1;
}

static char *path_of(const char *key, char *path)
{
	int n = snprintf(path, 600, "%s/", folder);
	for (; *key; key++)
		path[n++] = *key == '/' ? '_' : *key;
	path[n] = 0;
	return path;
}

static long read_key(const char *key, void *value, size_t room)
{
	char path[600];
	int fd = open(path_of(key, path), O_RDONLY);
	if (fd < 0)
		return -1;
	long length = lseek(fd, 0, SEEK_END);
	want(pread(fd, value, room, 0) >= 0);
	close(fd);
	return length;
}

static void write_key(const char *key, const void *value, size_t length)
{
	char path[600];
	int fd = open(path_of(key, path), O_CREAT | O_WRONLY | O_TRUNC, 0600);
	want(fd >= 0 && write(fd, value, length) == (ssize_t)length);
	close(fd);
}

static int set(void *context, const char *key, const void *value, size_t length)
{
	want(context == folder);
	if (strcmp(key, "bad") == 0)
		return GORUN_ERR_OTHER;
	int lock = locked();
	write_key(key, value, length);
	close(lock);
	return 0;
}

static int get(void *context, const char *key, double seconds, void *value, size_t room, size_t *length)
{
	(void)context;
	for (int turns = seconds * 1000; turns >= 0; turns--) {
		int lock = locked();
		long n = read_key(key, value, room);
		close(lock);
		if (n >= 0) {
			*length = n;
			return 0;
		}
		usleep(1000);
	}
	return GORUN_ERR_MISSING_KEYS;
}

static int add(void *context, const char *key, int64_t amount, int64_t *sum)
{
	(void)context;
	char text[32] = "";
	int lock = locked();
	read_key(key, text, sizeof text - 1);
	*sum = atoll(text) + amount;
	write_key(key, text, sprintf(text, "%lld", (long long)*sum));
	close(lock);
	return 0;
}

static int swap(void *context, const char *key, const void *old, size_t old_length, const void *value, size_t value_length,
	void *now, size_t room, size_t *now_length)
{
	(void)context;
	int lock = locked();
	long n = read_key(key, now, room);
	if (n < 0 ? old_length == 0 : (size_t)n == old_length && memcmp(now, old, n) == 0) {
		write_key(key, value, value_length);
		memcpy(now, value, value_length);
		n = value_length;
	} else if (n < 0) {
		memcpy(now, old, old_length);
		n = old_length;
	}
	*now_length = n;
	close(lock);
	return 0;
}

static int delete_key(void *context, const char *key, int *was_set)
{
	(void)context;
	char path[600];
	*was_set = unlink(path_of(key, path)) == 0;
	return 0;
}

static void test_calls(gorun_store store)
{
	static char sent[100000], got[100000];
	size_t length;
	int64_t sum;
	int was;
	memset(sent, 'x', sizeof sent);
	must(gorun_store_set(store, "long", sent, sizeof sent));
	must(gorun_store_get(store, "long", 1, got, sizeof got, &length));
	want(length == sizeof sent && memcmp(sent, got, length) == 0);
	must(gorun_store_add(store, "sum", 3, &sum));
	must(gorun_store_add(store, "sum", -1, &sum));
	want(sum == 2);
	must(gorun_store_delete(store, "sum", &was));
	want(was);
	wants_error(gorun_store_get(store, "sum", 0.01, got, sizeof got, &length), GORUN_ERR_MISSING_KEYS, "nobody has set");
	wants_error(gorun_store_set(store, "bad", "", 0), GORUN_ERR_OTHER, "the function of the store has returned -14");
}

int main(void)
{
	gorun_store_functions functions = {folder, set, get, add, swap, delete_key};
	gorun_store store;
	gorun_options options = {.rank = atoi(getenv("RANK")), .size = atoi(getenv("WORLD_SIZE"))};
	snprintf(folder, sizeof folder, "%s", getenv("STORE"));
	must(gorun_store_custom(&functions, &store));
	if (options.rank == 0)
		test_calls(store);
	options.store = store;
	must(gorun_init(&options, &world));
	must(gorun_rank(world, &rank));
	int one = 1;
	must(gorun_all_reduce(world, &one, &one, 1, GORUN_INT32, GORUN_SUM));
	want(rank == options.rank && one == options.size);
	must(gorun_close(world));
	must(gorun_store_close(store));
	functions.get = NULL;
	wants_error(gorun_store_custom(&functions, &store), GORUN_ERR_ARGUMENT, "a function is NULL");
	return 0;
}
