/* Preloaded by benchmarks/instruction_sets.py: has this process and its children see a processor with fewer instruction
 * sets than this machine's, at this machine's speed.
 *
 * Linux can have the CPUID instruction fault (arch_prctl ARCH_SET_CPUID, where /proc/cpuinfo has cpuid_fault). Each fault is
 * answered with what CPUID says, less the bits of the instruction sets that are to be away. glibc has chosen its own
 * functions before this is loaded; they don't reckon.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define BIT(n) (1u << (n))

enum { ALL, HASWELL, NEHALEM };

static int level;
static struct sigaction chained; /* who asked for SIGSEGV, such as Python's faulthandler, gets what isn't CPUID's */
static int (*libc_sigaction)(int, const struct sigaction *, struct sigaction *);

static void mask(unsigned leaf, unsigned subleaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
    if (leaf == 7 && subleaf == 0) {
        /* AVX-512 F, DQ, IFMA, PF, ER, CD, BW, VL; VBMI, VBMI2, VNNI, BITALG, VPOPCNTDQ; 4VNNIW, 4FMAPS, VP2INTERSECT, AMX */
        *b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));
        *c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));
        *d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));
        if (level == NEHALEM)
            *b &= ~(BIT(3) | BIT(5) | BIT(8)); /* BMI1, AVX2, BMI2 */
    } else if (leaf == 7 && subleaf == 1) {
        *a &= ~(BIT(4) | BIT(5) | BIT(21)); /* AVX-VNNI, AVX-512 BF16, AMX FP16 */
        *d = 0;                             /* AVX-VNNI-INT8 and later ones */
    } else if (leaf == 1 && level == NEHALEM) {
        *c &= ~(BIT(12) | BIT(26) | BIT(27) | BIT(28) | BIT(29)); /* FMA, XSAVE, OSXSAVE, AVX, F16C */
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)registers[REG_RIP];
    unsigned leaf, subleaf, a, b, c, d;

    if (at[0] != 0x0f || at[1] != 0xa2) {
        if ((chained.sa_flags & SA_SIGINFO) && chained.sa_sigaction) {
            chained.sa_sigaction(number, info, context);
        } else if (chained.sa_handler != SIG_DFL && chained.sa_handler != SIG_IGN) {
            chained.sa_handler(number);
        } else {
            struct sigaction dies = {.sa_handler = SIG_DFL};
            libc_sigaction(SIGSEGV, &dies, NULL); /* on return it faults again */
        }
        return;
    }
    a = leaf = (unsigned)registers[REG_RAX];
    c = subleaf = (unsigned)registers[REG_RCX];
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1UL);
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0UL);
    mask(leaf, subleaf, &a, &b, &c, &d);
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

int sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    if (!libc_sigaction)
        libc_sigaction = dlsym(RTLD_NEXT, "sigaction");
    if (number != SIGSEGV || level == ALL)
        return libc_sigaction(number, wanted, before);
    if (before)
        *before = chained;
    if (wanted)
        chained = *wanted;
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *wanted = getenv("INSTRUCTION_SETS");
    struct sigaction handles = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    if (wanted && !strcmp(wanted, "haswell"))
        level = HASWELL;
    else if (wanted && !strcmp(wanted, "nehalem"))
        level = NEHALEM;
    if (level == ALL)
        return;
    libc_sigaction = dlsym(RTLD_NEXT, "sigaction");
    libc_sigaction(SIGSEGV, &handles, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0UL)) {
        fputs("instruction_sets: this kernel or processor can't have CPUID fault\n", stderr);
        _exit(71);
    }
}
