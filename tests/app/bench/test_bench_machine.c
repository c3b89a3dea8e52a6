/*
 * The name of the processor, from what Linux writes on several machines.
 */
#include "app/bench/bench_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What Linux writes for a core of an ARM processor. */
#define ARM_CORE(index, variant, part, revision)                                                   \
    "processor\t: " index "\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes pmull\n"         \
    "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: " variant "\nCPU part\t: " part  \
    "\nCPU revision\t: " revision "\n\n"

static void check_name(const char *cpuinfo, size_t out_bytes, const char *expected)
{
    char name[128], copy[2000];
    (void)snprintf(copy, sizeof(copy), "%s", cpuinfo);
    FILE *f = fmemopen(copy, strlen(copy), "r");
    assert_non_null(f);
    bench_machine_read_name(f, name, out_bytes);
    assert_int_equal(fclose(f), 0);
    assert_string_equal(name, expected);
}

static void a_model_name_is_used_as_it_is(void **state)
{
    (void)state;
    static const char text[] = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\n"
                               "model name\t: AMD EPYC 7763 64-Core Processor\nstepping\t: 1\n";
    check_name(text, 128, "AMD EPYC 7763 64-Core Processor");
    check_name(text, 9, "AMD EPYC");
}

static void arm_is_named_by_its_kinds_of_cores(void **state)
{
    (void)state;
    check_name(ARM_CORE("0", "0x3", "0xd0c", "1") ARM_CORE("1", "0x3", "0xd0c", "1"), 128,
               "ARM 0x41:0xd0c r3p1");
    check_name(ARM_CORE("0", "0x0", "0xd46", "1") ARM_CORE("1", "0x0", "0xd4d", "1")
                   ARM_CORE("2", "0x0", "0xd46", "1") ARM_CORE("3", "0x1", "0xd46", "10"),
               128, "ARM 0x41:0xd46 r0p1, 0x41:0xd4d r0p1, 0x41:0xd46 r1p10");
    check_name(ARM_CORE("0", "0x0", "0xd46", "1") ARM_CORE("1", "0x0", "0xd4d", "1"), 24,
               "ARM 0x41:0xd46 r0p1, 0x"); /* cut */
}

static void another_text_gives_no_name(void **state)
{
    (void)state;
    check_name("processor\t: 0\nhart\t\t: 2\nisa\t\t: rv64imafdc\n", 128, "");
    check_name("model name\nCPU revision", 128, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_name_is_used_as_it_is),
        cmocka_unit_test(arm_is_named_by_its_kinds_of_cores),
        cmocka_unit_test(another_text_gives_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
