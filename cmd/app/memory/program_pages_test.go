package memory

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"castellan/domain/kit/storetest"
)

// Only pages that can be read again from the program's file may be unmapped.
func TestCleanMappings(t *testing.T) {
	const exe = "/opt/castellan bin/castellan"
	mapping := func(head string, anonymous, swap, locked int) string {
		return fmt.Sprintf("%s\nSize: 76 kB\nRss: 64 kB\nAnonymous: %8d kB\nSwap: %d kB\nSwapPss: 0 kB\nLocked: %d kB\n"+
			"THPeligible: 0\nVmFlags: rd ex mr mw me\n", head, anonymous, swap, locked)
	}
	for _, c := range []struct {
		name, smaps string
		want        []pageRange
	}{
		{"code and read-only data", mapping("00400000-01696000 r-xp 00000000 fe:01 99     "+exe, 0, 0, 0) +
			mapping("01696000-02cea000 r--p 01296000 fe:01 99     "+exe, 0, 0, 0),
			[]pageRange{{0x400000, 0x1696000}, {0x1696000, 0x2cea000}}},
		{"variables", mapping("02cea000-03236000 rw-p 028ea000 fe:01 99     "+exe, 0, 0, 0), nil},
		{"relocated", mapping("01696000-02cea000 r--p 01296000 fe:01 99     "+exe, 4, 0, 0), nil},
		{"relocated and swapped out", mapping("01696000-02cea000 r--p 01296000 fe:01 99     "+exe, 0, 4, 0), nil},
		{"locked", mapping("00400000-01696000 r-xp 00000000 fe:01 99     "+exe, 0, 0, 64), nil},
		{"shared", mapping("00400000-01696000 r-xs 00000000 fe:01 99     "+exe, 0, 0, 0), nil},
		{"another file", mapping("7f0000000000-7f0000100000 r-xp 00000000 fe:01 7     /lib/castellan", 0, 0, 0), nil},
		{"no file, after one", mapping("00400000-01696000 r-xp 00000000 fe:01 99     "+exe, 4, 0, 0) +
			mapping("7f0000000000-7f0000100000 r--p 00000000 00:00 0 ", 0, 0, 0), nil},
		{"nothing", "", nil},
	} {
		if got := cleanMappings(strings.NewReader(c.smaps), exe); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %x, want %x", c.name, got, c.want)
		}
	}
}

// The pages of the program leave the resident memory, and the program keeps running.
func TestReleaseProgramPages(t *testing.T) {
	exe := storetest.Value(os.Executable())(t)
	smaps := storetest.Value(os.ReadFile("/proc/self/smaps"))(t)
	ranges := cleanMappings(bytes.NewReader(smaps), exe)
	if len(ranges) == 0 {
		t.Fatalf("no mapping of %s:\n%s", exe, smaps)
	}
	const populateRead = 22 // MADV_POPULATE_READ: every page becomes resident
	for _, r := range ranges {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, r.start, r.end-r.start, populateRead)
	}
	before := residentFile(t)
	after := before
	for range 3 { // the test itself needs pages again at once, sometimes many
		releaseProgramPages()
		after = min(after, residentFile(t))
	}
	t.Logf("%d KiB of files are resident, %d before", after, before)
	if after > before*2/3 {
		t.Errorf("%d KiB of files are resident, %d before", after, before)
	}
}

// residentFile returns the resident file memory of this process, in KiB.
func residentFile(t *testing.T) (kib int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "\nRssFile:")
	if err == nil {
		_, err = fmt.Sscanf(rest, "%d kB", &kib)
	}
	storetest.Must(t, err)
	return kib
}
