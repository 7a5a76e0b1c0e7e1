/* Execute a program on a kernel without some system calls: old_kernel NUMBER,NUMBER… PROGRAM [ARGUMENT…]
 *
 * The calls fail with ENOSYS, also in every descendant. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 8

int main(int count, char **arguments)
{
    struct sock_filter filter[2 * MOST + 2];
    unsigned short length = 0;
    (void)count;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *at = arguments[1]; *at && length < 2 * MOST;) {
        unsigned number = (unsigned)strtoul(at, &at, 10);
        at += *at == ',';
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = length, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 70;
    execv(arguments[2], arguments + 2);
    return 71;
}
