/* Counts what a program asks of the disk below one folder, and lets the n-th of it fail.
 *
 * Preloaded, it stands between a program and the C library, so that what Python, SQLite and Arrow
 * write is counted alike. `faults_arm` chooses the folder, the operation
 * and how it fails; a program that was not armed is left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, FAIL, KILL, FULL, SHORT, TORN };
#define MOST_FILES 4096
#define MOST_LOG (1 << 20)

static char root[PATH_MAX];
static size_t root_length;
static int kind, is_full;
static long at, counted;
static char tracked[MOST_FILES]; /* descriptors of files below the folder */
static char logged[MOST_LOG];
static size_t log_length;

void faults_arm(const char *folder, int how, long which) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    kind = how;
    at = which;
    counted = 0;
    is_full = 0;
    log_length = 0;
    memset(tracked, 0, sizeof tracked);
}

long faults_counted(void) { return counted; }
const char *faults_log(void) { return logged; }

static int is_below(const char *path) {
    return root_length && path && strncmp(path, root, root_length) == 0;
}

static int is_tracked(int file) { return file >= 0 && file < MOST_FILES && tracked[file]; }

static int is_place(int folder, const char *path) {
    return path && (path[0] == '/' ? is_below(path) : is_tracked(folder));
}

static void name_of(int file, char *name) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, name, PATH_MAX - 1);
    name[n < 0 ? 0 : n] = 0;
}

static void note(const char *what, const char *path) {
    const char *shown = is_below(path) ? path + root_length : path;
    int n = snprintf(logged + log_length, MOST_LOG - log_length, "%s %s\n", what, shown);
    if (n > 0 && log_length + n < MOST_LOG) log_length += n;
}

/* What is to become of the next operation: 0 let it be, -1 fail it with errno set, 1 cut it short. */
static int next(const char *what, const char *path, int takes_space) {
    int saved = errno;
    counted++;
    note(what, path);
    if (is_full && takes_space) {
        errno = ENOSPC;
        return -1;
    }
    if (counted != at) {
        errno = saved;
        return 0;
    }
    switch (kind) {
    case FAIL: errno = EIO; return -1;
    case KILL: kill(getpid(), SIGKILL); return -1;
    case FULL:
        is_full = 1;
        if (!takes_space) return 0;
        errno = ENOSPC;
        return -1;
    case SHORT:
    case TORN: return 1;
    default: return 0;
    }
}

static int next_of_file(const char *what, int file, int takes_space) {
    char name[PATH_MAX];
    name_of(file, name);
    return next(what, name, takes_space);
}

/* What is written of n bytes; with TORN the program ends after them. */
static ssize_t cut(ssize_t written) {
    if (kind == TORN) kill(getpid(), SIGKILL);
    return written;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static int opened(int file) {
    if (file >= 0 && file < MOST_FILES) tracked[file] = 1;
    return file;
}

#define WRITES(flags) ((flags) & (O_WRONLY | O_RDWR | O_CREAT))
#define MODE(flags) mode_t mode = 0; if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

#define OPEN(name) int name(const char *path, int flags, ...) { \
    MODE(flags) REAL(name); \
    if (!is_below(path)) return real(path, flags, mode); \
    if (next(WRITES(flags) ? "open" : "read", path, flags & O_CREAT) < 0) return -1; \
    return opened(real(path, flags, mode)); }
OPEN(open)
OPEN(open64)

#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    MODE(flags) REAL(name); \
    if (!is_place(folder, path)) return real(folder, path, flags, mode); \
    if (next(WRITES(flags) ? "open" : "read", path, flags & O_CREAT) < 0) return -1; \
    return opened(real(folder, path, flags, mode)); }
OPENAT(openat)
OPENAT(openat64)

int close(int file) {
    REAL(close);
    if (file >= 0 && file < MOST_FILES) tracked[file] = 0;
    return real(file);
}

ssize_t write(int file, const void *data, size_t n) {
    REAL(write);
    if (!is_tracked(file)) return real(file, data, n);
    int then = next_of_file("write", file, 1);
    if (then < 0) return -1;
    return then ? cut(real(file, data, n > 1 ? n / 2 : n)) : real(file, data, n);
}

ssize_t writev(int file, const struct iovec *parts, int n) {
    REAL(writev);
    if (!is_tracked(file)) return real(file, parts, n);
    int then = next_of_file("write", file, 1);
    if (then < 0) return -1;
    return then ? cut(real(file, parts, n > 1 ? n / 2 : n)) : real(file, parts, n);
}

#define PWRITE(name, offset_t) ssize_t name(int file, const void *data, size_t n, offset_t from) { \
    REAL(name); \
    if (!is_tracked(file)) return real(file, data, n, from); \
    int then = next_of_file("write", file, 1); \
    if (then < 0) return -1; \
    return then ? cut(real(file, data, n > 1 ? n / 2 : n, from)) : real(file, data, n, from); }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define OF_FILE(name, what, takes_space, declared, given) int name declared { \
    REAL(name); \
    if (is_tracked(file) && next_of_file(what, file, takes_space) < 0) return -1; \
    return real given; }
OF_FILE(fsync, "fsync", 1, (int file), (file))
OF_FILE(fdatasync, "fsync", 1, (int file), (file))
OF_FILE(ftruncate, "truncate", 0, (int file, off_t n), (file, n))
OF_FILE(ftruncate64, "truncate", 0, (int file, off64_t n), (file, n))
OF_FILE(fchmod, "chmod", 0, (int file, mode_t mode), (file, mode))

#define OF_PATH(name, what, takes_space, path, declared, given) int name declared { \
    REAL(name); \
    if (is_below(path) && next(what, path, takes_space) < 0) return -1; \
    return real given; }
OF_PATH(rename, "rename", 0, to, (const char *from, const char *to), (from, to))
OF_PATH(link, "link", 0, to, (const char *from, const char *to), (from, to))
OF_PATH(symlink, "link", 1, to, (const char *from, const char *to), (from, to))
OF_PATH(mkdir, "mkdir", 1, path, (const char *path, mode_t mode), (path, mode))
OF_PATH(unlink, "unlink", 0, path, (const char *path), (path))
OF_PATH(rmdir, "rmdir", 0, path, (const char *path), (path))
OF_PATH(chmod, "chmod", 0, path, (const char *path, mode_t mode), (path, mode))

#define OF_PLACE(name, what, takes_space, folder, path, declared, given) int name declared { \
    REAL(name); \
    if (is_place(folder, path) && next(what, path, takes_space) < 0) return -1; \
    return real given; }
OF_PLACE(renameat, "rename", 0, f, to, (int e, const char *from, int f, const char *to), (e, from, f, to))
OF_PLACE(linkat, "link", 0, f, to, (int e, const char *from, int f, const char *to, int flags), (e, from, f, to, flags))
OF_PLACE(mkdirat, "mkdir", 1, f, path, (int f, const char *path, mode_t mode), (f, path, mode))
OF_PLACE(unlinkat, "unlink", 0, f, path, (int f, const char *path, int flags), (f, path, flags))
OF_PLACE(fchmodat, "chmod", 0, f, path, (int f, const char *path, mode_t mode, int flags), (f, path, mode, flags))
