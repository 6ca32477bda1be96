package memory

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// pageRange is a range of addresses.
type pageRange struct{ start, end uintptr }

// releaseProgramPages unmaps the pages of the program's own file: its code and its read-only data. The start touches
// nearly all of them, because it initialises every package and the system maps 64 KiB around each page that is read.
// The running service needs a third. The pages stay in the system's page cache. A page that is needed again costs a
// minor fault and no read.
//
// It does nothing on a system without /proc.
func releaseProgramPages() {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer maps.Close()
	for _, r := range cleanMappings(maps, exe) {
		// The only error is a locked range, which stays as it is.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, r.start, r.end-r.start, syscall.MADV_DONTNEED)
	}
}

// cleanMappings finds the mappings of a file with unmodified content: they cannot be written, and no page was changed
// by a relocation, a breakpoint or anything else. Only such a mapping can be read again from the file. The text is that
// of /proc/self/smaps.
func cleanMappings(smaps io.Reader, file string) []pageRange {
	var found []pageRange
	var r pageRange
	clean := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "Anonymous:", "Swap:", "Locked:":
			clean = clean && strings.TrimSpace(rest) == "0 kB"
		case "VmFlags:": // the last line of a mapping
			if clean {
				found = append(found, r)
			}
		default:
			if !strings.HasSuffix(name, ":") { // the first line: 00400000-01696000 r-xp 00000000 fe:01 123   /bin/x
				access, _, _ := strings.Cut(rest, " ")
				_, err := fmt.Sscanf(name, "%x-%x", &r.start, &r.end)
				clean = err == nil && (access == "r-xp" || access == "r--p") && strings.HasSuffix(rest, " "+file)
			}
		}
	}
	return found
}
