// Package calibrate proposes the parameters of password hashes for a machine: it measures published sets and stronger
// ones, and states what a guess costs with each.
//
// Start reading at Run.
package calibrate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/password/argon2id"
)

const (
	// cardBytes is the memory bandwidth of a fast graphics card, in bytes a second.
	cardBytes = 1e12
	measuring = 300 * time.Millisecond // for each set
)

// calibrated is a set and what it costs.
type calibrated struct {
	password.Candidate
	hash   time.Duration // 0: it was not measured
	served float64       // logins a second
}

// Run measures all candidates and prints them, and the settings of the strongest one that serves the logins a second in
// so many slots. It returns an error if none does.
func Run(ctx context.Context, out io.Writer, logins, slots int) error {
	processors := runtime.GOMAXPROCS(0)
	fmt.Fprintf(out, "argon2id with %s, hash slots: %d, processors: %d\n", argon2id.Vectors(), slots, processors)
	found, err := measureAll(ctx, float64(logins), slots, processors, availableMemory())
	if err != nil {
		return err
	}
	return printSets(out, found, logins, slots)
}

// measureAll measures all candidates. A set is not measured if it does not fit into memory, or if a weaker one that
// moves less memory was already far too slow.
func measureAll(ctx context.Context, logins float64, slots, processors int, memory uint64) (all []calibrated,
	err error) {
	hopeless := -1.0 // bytes a guess moves
	for _, candidate := range password.Candidates() {
		m := calibrated{Candidate: candidate}
		fits := uint64(slots*m.MemoryBytes()) <= memory/2
		if fits && (hopeless < 0 || m.Traffic() < 2*hopeless) {
			if m.hash, err = password.Measure(ctx, m.Params, slots, measuring); err != nil {
				return nil, err
			}
			m.served = password.Served(m.hash, slots, processors)
			if m.served < logins/2 && (hopeless < 0 || m.Traffic() < hopeless) {
				hopeless = m.Traffic()
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// strongest returns the set that costs an attacker the most and serves the logins. A published set wins a tie.
func strongest(all []calibrated, logins int) (best calibrated, ok bool) {
	for _, m := range all {
		if m.served >= float64(logins) && m.Traffic() > best.trafficOrZero() {
			best, ok = m, true
		}
	}
	return best, ok
}

func (c calibrated) trafficOrZero() float64 {
	if c.hash == 0 {
		return 0
	}
	return c.Traffic()
}

func printSets(out io.Writer, all []calibrated, logins, slots int) error {
	t := tabwriter.NewWriter(out, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "set\tMiB\tpasses\tlanes\thash\tlogins/s\tguesses/s*\tcost of a guess\t")
	usual := password.DefaultParams().Traffic()
	for _, m := range all {
		hash, served, serves := "–", "–", ""
		if m.hash > 0 {
			hash, served = m.hash.Round(10*time.Microsecond).String(), fmt.Sprintf("%.0f", m.served)
		}
		if m.served >= float64(logins) {
			serves = "enough"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t%s\t%.0f\t%.1f × the default\t%s\n", m.Name, m.MemoryKiB>>10, m.Passes, m.Lanes,
			hash, served, cardBytes/m.Traffic(), m.Traffic()/usual, serves)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, "– is not measured: too slow, or too large for the memory of this machine.\n"+
		"* At most, by a graphics card that moves 1 TB a second; every guess also occupies the MiB.")
	best, ok := strongest(all, logins)
	if !ok {
		return fmt.Errorf("no set serves %d logins a second on this machine: add processors or nodes", logins)
	}
	_, err := fmt.Fprintf(out, `
The strongest set that serves %d logins a second; hashing takes %d MiB:

password:
  argon2_memory_kib: %d
  argon2_time: %d
  argon2_parallelism: %d
`, logins, slots*best.MemoryBytes()>>20, best.MemoryKiB, best.Passes, best.Lanes)
	return err
}

// availableMemory returns the bytes that processes can get; 1 GiB if the system does not say it.
func availableMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 1 << 30
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, ok := strings.CutPrefix(lines.Text(), "MemAvailable:")
		if kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(text, "kB")), 10, 64); ok && err == nil {
			return kib << 10
		}
	}
	return 1 << 30
}
