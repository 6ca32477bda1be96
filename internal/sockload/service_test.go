package sockload_test

import (
	"bufio"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/cluster"
	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/internal/child"
	"castellan/internal/porttest"
	"castellan/internal/sockload"
)

// serving names the variable that makes a started copy of this program the service; its value are the settings, one a
// line.
const serving = "SOCKLOAD_SERVE"

const secret = "correct horse battery staple"

func TestMain(m *testing.M) {
	sockload.Child()
	if settings := os.Getenv(serving); settings != "" {
		if os.Getenv("SOCKLOAD_PROFILES") != "" {
			runtime.MemProfileRate = 64
		}
		if err := serve(strings.Split(settings, "\n")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// settings of the service: development mode, no start guards, the cheapest password hash. Without a dsn it uses SQLite.
func settings(d, dsn string) []string {
	return []string{
		"CASTELLAN_DEV=true",
		"CASTELLAN_DATA_DIR=" + d,
		"CASTELLAN_DATABASE_URL=" + dsn,
		"CASTELLAN_KEYS_MASTER_FILE=" + filepath.Join(d, "master.key"),
		"CASTELLAN_LIMITS_ENABLED=false",
		"CASTELLAN_PASSWORD_ARGON2_MEMORY_KIB=8",
		"CASTELLAN_PASSWORD_ARGON2_TIME=1",
		"CASTELLAN_HTTP_MAX_CONNECTIONS=40000",
		"CASTELLAN_HTTP_MAX_CONNECTIONS_PER_IP=0",
		"CASTELLAN_LOG_LEVEL=error",
	}
}

// serve runs the service in a separate process, whose memory is then only its own. Each line on standard input is a
// query that is answered by a line.
func serve(settings []string) error {
	cfg, err := config.Load("", settings)
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
		stop()
	}()
	if err := child.AwaitListener(ctx, cfg.HTTP.Addr); err != nil {
		return errors.Join(err, <-done)
	}
	fmt.Println("ready")
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
		rss, err := child.Resident(os.Getpid())
		if err != nil {
			return err
		}
		json.NewEncoder(os.Stdout).Encode(memory{
			RSS:        rss,
			Heap:       m.HeapAlloc,
			HeapInUse:  m.HeapInuse,
			HeapKept:   m.HeapIdle - m.HeapReleased,
			Stack:      m.StackInuse,
			Other:      m.MSpanSys + m.MCacheSys + m.BuckHashSys + m.GCSys + m.OtherSys,
			Goroutines: runtime.NumGoroutine(),
		})
	}
	stop()
	return <-done
}

// memory of the service in bytes: what it has from the system, and its use by the Go runtime.
type memory struct {
	RSS, Heap, HeapInUse, HeapKept, Stack, Other uint64
	Goroutines                                   int
}

func (m memory) String() string {
	mib := func(n uint64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	return fmt.Sprintf("rss %s MiB: heap %s in spans of %s, %s kept for more, stacks %s, runtime %s; %d goroutines",
		mib(m.RSS), mib(m.Heap), mib(m.HeapInUse), mib(m.HeapKept), mib(m.Stack), mib(m.Other), m.Goroutines)
}

// service is a running service, seen from outside.
type service struct {
	tb   testing.TB
	keys []crypto.Signer // of the device of each account
	node                 // the first one
	all  []node          // of its cluster
}

type node struct {
	addr string
	*child.Process
}

// start creates users accounts u0@example.com … and starts the service over them.
func start(tb testing.TB, users int) *service { return startOn(tb, "", 1, users) }

// startOn is start on a database and, if nodes is more than 1, as a cluster.
func startOn(tb testing.TB, dsn string, nodes, users int) *service {
	tb.Helper()
	d := tb.TempDir()
	common := settings(d, dsn)
	s := &service{tb: tb, keys: populate(tb, common, users)}
	tls := filepath.Join(d, "cluster")
	storetest.Must(tb, cluster.InitKeys(tls, ""))
	var join []string
	for i := range nodes {
		n := node{addr: porttest.Free(tb)}
		own := append(slices.Clone(common), "CASTELLAN_HTTP_ADDR="+n.addr)
		if nodes > 1 {
			gossip := porttest.Free(tb)
			own = append(own, fmt.Sprint("CASTELLAN_DATA_DIR=", d, "/", i), "CASTELLAN_CLUSTER_GOSSIP_ADDR="+gossip,
				"CASTELLAN_CLUSTER_ACTOR_ADDR="+porttest.Free(tb), "CASTELLAN_CLUSTER_JOIN="+strings.Join(join, ","),
				"CASTELLAN_CLUSTER_TLS_DIR="+tls)
			join = append(join, gossip)
		}
		cmd, err := child.Self(serving + "=" + strings.Join(own, "\n"))
		storetest.Must(tb, err)
		if n.Process, err = child.Interact(cmd); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := n.End(time.Minute); err != nil {
				tb.Errorf("the service ended: %v", err)
			}
		})
		if _, err = n.ReadLine(); err != nil {
			tb.Fatal("the service did not start")
		}
		s.all = append(s.all, n)
	}
	s.node = s.all[0]
	return s
}

// at returns the node for one of many requests, in turn.
func (s *service) at(i int) node { return s.all[i%len(s.all)] }

// populate creates accounts, each with a device, and returns the devices' keys.
func populate(tb testing.TB, settings []string, users int) []crypto.Signer {
	tb.Helper()
	cfg := storetest.Value(config.Load("", settings))(tb)
	v := storetest.Value(app.Open(tb.Context(), cfg))(tb)
	defer v.Close()
	h, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}})
	storetest.Must(tb, err)
	hash := storetest.Value(h.Hash(tb.Context(), secret))(tb)
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

// measure sends one query to each process of the service and returns the sum.
func (s *service) measure(what string) (sum memory) {
	s.tb.Helper()
	for _, n := range s.all {
		var m memory
		line, err := n.Ask(what)
		if err == nil {
			err = json.Unmarshal([]byte(line), &m)
		}
		if err != nil {
			s.tb.Fatal(err)
		}
		sum = memory{sum.RSS + m.RSS, sum.Heap + m.Heap, sum.HeapInUse + m.HeapInUse, sum.HeapKept + m.HeapKept,
			sum.Stack + m.Stack, sum.Other + m.Other, sum.Goroutines + m.Goroutines}
	}
	return sum
}

// profile writes a profile into the folder SOCKLOAD_PROFILES, if that is set.
func (s *service) profile(kind, name string) {
	if d := os.Getenv("SOCKLOAD_PROFILES"); d != "" {
		s.measure(kind + " " + filepath.Join(d, name))
	}
}
