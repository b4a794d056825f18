/* A PKCS#11 module for tests. It passes calls to SoftHSM, and has the faults that the lines of the file "faults" in its folder name:
 *   FUNCTION hang    the call returns when the line is gone
 *   FUNCTION error   the call returns a vendor's error
 *   C_Sign flip      the call succeeds, with one bit of the signature changed
 * Each call of C_Login adds a byte to the file "logins". */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long ulong_t;
typedef ulong_t (*call_t)();

/* CK_FUNCTION_LIST: the version, and 68 functions in the order of the standard. */
struct list { unsigned char version[2]; call_t calls[68]; };
enum { INITIALIZE = 0, LOGIN = 18, SIGN = 43 };
#define VENDOR_ERROR 0x80000001ul

static struct list *real, own;

static void path_of(char *path, size_t size, const char *name)
{
    const char *folder = getenv("FAULTY_FOLDER");
    snprintf(path, size, "%s/%s", folder ? folder : ".", name);
}

static int has(const char *function, const char *fault)
{
    char path[4096], line[128], wanted[128];
    path_of(path, sizeof path, "faults");
    snprintf(wanted, sizeof wanted, "%s %s\n", function, fault);
    FILE *file = fopen(path, "r");
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        found = strcmp(line, wanted) == 0;
    if (file)
        fclose(file);
    return found;
}

static ulong_t fault_of(const char *function)
{
    while (has(function, "hang"))
        usleep(20000);
    return has(function, "error") ? VENDOR_ERROR : 0;
}

static ulong_t initialize(void *args)
{
    ulong_t fault = fault_of("C_Initialize");
    return fault ? fault : real->calls[INITIALIZE](args);
}

static ulong_t login(ulong_t session, ulong_t user, unsigned char *pin, ulong_t length)
{
    char path[4096];
    path_of(path, sizeof path, "logins");
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    if (file < 0 || write(file, "x", 1) != 1)
        return VENDOR_ERROR;
    close(file);
    ulong_t fault = fault_of("C_Login");
    return fault ? fault : real->calls[LOGIN](session, user, pin, length);
}

static ulong_t sign(ulong_t session, unsigned char *data, ulong_t data_length, unsigned char *signature, ulong_t *length)
{
    ulong_t fault = fault_of("C_Sign");
    if (fault)
        return fault;
    ulong_t result = real->calls[SIGN](session, data, data_length, signature, length);
    if (!result && signature && has("C_Sign", "flip"))
        signature[*length - 5] ^= 1;
    return result;
}

ulong_t C_GetFunctionList(struct list **list)
{
    if (!real) {
        void *library = dlopen("/usr/lib/softhsm/libsofthsm2.so", RTLD_NOW | RTLD_LOCAL);
        ulong_t (*get)(struct list **) = library ? (ulong_t (*)(struct list **))dlsym(library, "C_GetFunctionList") : 0;
        if (!get || get(&real))
            return VENDOR_ERROR;
        own = *real;
        own.calls[INITIALIZE] = (call_t)initialize;
        own.calls[LOGIN] = (call_t)login;
        own.calls[SIGN] = (call_t)sign;
    }
    *list = &own;
    return 0;
}
