package sockload_test

import (
	"bufio"
	"context"
	"crypto"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/access/device"
	"castellan/domain/access/device/devicetest"
	"castellan/domain/access/password"
	"castellan/domain/access/user"
	"castellan/domain/kit/id"
	"castellan/internal/sockload"
)

// dir makes a started copy of this program the service, and names its data folder.
const dir = "SOCKLOAD_SERVE"

const secret = "correct horse battery staple"

func TestMain(m *testing.M) {
	sockload.Child()
	if d := os.Getenv(dir); d != "" {
		if os.Getenv("SOCKLOAD_PROFILES") != "" {
			runtime.MemProfileRate = 64
		}
		if err := serve(d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// settings returns those of the service: development mode on SQLite, no start guards, the cheapest password
// hash.
func settings(d, addr string) (config.Config, error) {
	return config.Load(
		"",
		[]string{
			"CASTELLAN_DEV=true",
			"CASTELLAN_DATA_DIR=" + d,
			"CASTELLAN_HTTP_ADDR=" + addr,
			"CASTELLAN_LIMITS_ENABLED=false",
			"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8",
			"CASTELLAN_PASSWORD_ARGON2_TIME=1",
			"CASTELLAN_HTTP_MAX_CONNECTIONS=40000",
			"CASTELLAN_HTTP_MAX_CONNECTIONS_PER_IP=0",
			"CASTELLAN_LOG_LEVEL=error",
		},
	)
}

// serve runs the service in a process of its own, whose memory is then only its own. Each line on standard
// input is a question that is answered by a line.
func serve(d string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a free port
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	l.Close()
	cfg, err := settings(d, addr)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() {
		done <- app.Serve(ctx, cfg,
			app.Options{Version: "bench",
				Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})), Out: io.Discard})
	}()
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			break
		}
		select {
		case err := <-done:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
	fmt.Println(addr)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		what, file, _ := strings.Cut(in.Text(), " ")
		switch what {
		case "gc":
			runtime.GC()
			debug.FreeOSMemory()
		case "heap", "goroutine":
			f, err := os.Create(file)
			if err != nil {
				return err
			}
			pprof.Lookup(what).WriteTo(f, 0)
			f.Close()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		json.NewEncoder(
			os.Stdout,
		).Encode(
			memory{
				RSS:        rss(),
				Heap:       m.HeapAlloc,
				HeapInUse:  m.HeapInuse,
				HeapKept:   m.HeapIdle - m.HeapReleased,
				Stack:      m.StackInuse,
				Other:      m.MSpanSys + m.MCacheSys + m.BuckHashSys + m.GCSys + m.OtherSys,
				Goroutines: runtime.NumGoroutine(),
			},
		)
	}
	stop()
	return <-done
}

// memory of the service in bytes: from the system, and its use by the Go runtime.
type memory struct {
	RSS, Heap, HeapInUse, HeapKept, Stack, Other uint64
	Goroutines                                   int
}

func (m memory) String() string {
	mib := func(n uint64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	return fmt.Sprintf("rss %s MiB: heap %s in spans of %s, %s kept for more, stacks %s, runtime %s; %d goroutines",
		mib(m.RSS), mib(m.Heap), mib(m.HeapInUse), mib(m.HeapKept), mib(m.Stack), mib(m.Other), m.Goroutines)
}

func rss() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseUint(strings.Fields(string(text))[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// service is a running service, seen from outside.
type service struct {
	tb   testing.TB
	keys []crypto.Signer // of the device of each account
	addr string
	in   io.WriteCloser
	out  *bufio.Reader
}

// start makes users accounts u0@example.com … and starts the service over them.
func start(tb testing.TB, users int) *service {
	tb.Helper()
	d := tb.TempDir()
	keys := populate(tb, d, users)
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), dir+"="+d)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s := &service{tb: tb, keys: keys, in: in, out: bufio.NewReader(out)}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("the service ended: %v", err)
		}
	})
	line, err := s.out.ReadString('\n')
	if err != nil {
		tb.Fatal("the service did not start")
	}
	s.addr = strings.TrimSpace(line)
	return s
}

// populate makes accounts, each with a device, and returns the devices' keys.
func populate(tb testing.TB, d string, users int) []crypto.Signer {
	tb.Helper()
	cfg, err := settings(d, "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	v, err := app.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	defer v.Close()
	h, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}})
	if err != nil {
		tb.Fatal(err)
	}
	hash, err := h.Hash(tb.Context(), secret)
	if err != nil {
		tb.Fatal(err)
	}
	keys := make([]crypto.Signer, users)
	var wg sync.WaitGroup
	for part := range 64 {
		wg.Go(func() {
			for i := part; i < users; i += 64 {
				u := user.New(id.New(time.Now()), time.Now())
				u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90533%07d", i), fmt.Sprintf("u%d@example.com", i)
				u.Push = true
				k, public := devicetest.Signer(tb, device.EdDSA)
				keys[i] = k
				if err := v.DB.Commit(tb.Context(), user.Add{User: u, PasswordHash: hash},
					device.Add{Device: device.Device{ID: deviceID(i), UserID: u.ID, Key: public,
						Brand: "b", Model: "m", Platform: "cli", Status: device.Active, CreatedAt: u.CreatedAt}}); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if tb.Failed() {
		tb.FailNow()
	}
	return keys
}

func deviceID(n int) string { return fmt.Sprintf("device-%d", n) }

// ask sends one question to the service's process.
func (s *service) ask(what string) (m memory) {
	s.tb.Helper()
	fmt.Fprintln(s.in, what)
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &m)
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	return m
}

// profile writes a profile into the folder SOCKLOAD_PROFILES, if that is set.
func (s *service) profile(kind, name string) {
	if d := os.Getenv("SOCKLOAD_PROFILES"); d != "" {
		s.ask(kind + " " + filepath.Join(d, name))
	}
}
