package sockload_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"castellan/domain/kit/storetest"
	"castellan/internal/pgtest"
	"castellan/internal/sockload"
)

const (
	users = 5000
	each  = 2   // challenges of a user, one socket each: fewer than may be open, because a login may be repeated
	extra = 100 // users for warming up and for the measured logins
)

// BenchmarkIdleSockets opens 10 000 challenges of 5 000 users and a socket for each, on SQLite, on PostgreSQL and on
// three nodes. It reports the memory of one in the service, including subscription and expiry: in the processes as they
// are, and after a collection. Then it measures the latency of an event on SQLite with those sockets open. It runs
// once:
//
//	go test -run '^$' -bench IdleSockets -benchtime 1x ./internal/sockload
//
// SOCKLOAD_PROFILES names a folder for profiles; they cost memory themselves.
func BenchmarkIdleSockets(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		s := start(b, users+extra)
		stop := s.idle(b)
		s.latency(b)
		ended(b, stop)
	})
	b.Run("postgres", func(b *testing.B) { ended(b, startOn(b, pgtest.DSN(b), 1, users+extra).idle(b)) })
	b.Run("three-nodes", func(b *testing.B) { ended(b, startOn(b, pgtest.DSN(b), 3, users+extra).idle(b)) })
}

func ended(b *testing.B, stop func() error) {
	b.Helper()
	storetest.Must(b, stop())
}

// idle opens the sockets and reports their memory. They are open until stop.
func (s *service) idle(b *testing.B) (stop func() error) {
	// One-time costs: pools, prepared statements, grown tables.
	ended(b, s.open(s.challenges(users, users+extra, 2)))
	time.Sleep(2 * time.Second)
	before := s.measure("gc")
	b.Log("before        ", before)

	tokens := s.challenges(0, users, each)
	b.Log("challenges    ", s.measure("now"))
	challenges := s.measure("gc")
	b.Log("collected     ", challenges)
	stop = s.open(tokens)
	b.Log("with sockets  ", s.measure("now"))
	time.Sleep(25 * time.Second) // each was pinged, and its challenge requested, once
	idle := s.measure("now")
	b.Log("25 s later    ", idle)
	after := s.measure("gc")
	b.Log("collected     ", after)
	s.profile("heap", "heap.pb.gz")
	cost := func(more, less memory) float64 { return (float64(more.RSS) - float64(less.RSS)) / users / each }
	b.ReportMetric(cost(idle, before), "B/socket-as-is")
	b.ReportMetric(cost(after, before), "B/socket")
	b.ReportMetric(cost(after, challenges), "B/socket-without-challenge")
	return stop
}

// BenchmarkEvent measures the latency of an event with nothing else open.
func BenchmarkEvent(b *testing.B) {
	s := start(b, users+extra)
	s.latency(b)
}

// latency measures the time from sending the answer to a method to receiving its frame. It alternates a code, the
// approval of a device and a bare durable commit.
func (s *service) latency(b *testing.B) {
	const rounds = 300
	db := storetest.Value(sql.Open("sqlite",
		filepath.Join(b.TempDir(), "bare.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"))(b)
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)"); err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("x", 500)
	line := s.line()
	var bare, frame, pushed []time.Duration
	for i := range 2 * rounds {
		c, err := s.login(users + i%extra)
		storetest.Must(b, err)
		body, header, of := s.mail(c), "p-auth: "+c.token, &frame
		if i%2 == 1 {
			of = &pushed
			if body, header, err = s.approve(c); err != nil {
				b.Fatal(err)
			}
		}
		conn := storetest.Value(sockload.Dial(s.addr, c.token))(b)
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		if _, err := db.Exec("INSERT INTO t (text) VALUES (?)", text); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(began))
		began = time.Now()
		storetest.Must(b, line.complete(header, body))
		got, err := sockload.Next(conn)
		*of = append(*of, time.Since(began))
		if err == nil && !bytes.Contains(got, []byte("METHOD_COMPLETE")) {
			err = fmt.Errorf("got %s", got)
		}
		storetest.Must(b, errors.Join(err, line.answered()))
		conn.Close()
	}
	slices.Sort(bare)
	slices.Sort(frame)
	slices.Sort(pushed)
	ms := func(d []time.Duration, p int) float64 { return float64(d[len(d)*p/100].Microseconds()) / 1000 }
	b.ReportMetric(ms(bare, 50), "commit-p50-ms")
	b.ReportMetric(ms(bare, 99), "commit-p99-ms")
	b.ReportMetric(ms(frame, 50), "frame-p50-ms")
	b.ReportMetric(ms(frame, 99), "frame-p99-ms")
	b.ReportMetric(ms(pushed, 50), "approval-p50-ms")
	b.ReportMetric(ms(pushed, 99), "approval-p99-ms")
}

// BenchmarkOpenChallenges opens 100 000 challenges of 50 000 users and reports the memory of one in the service: when
// the last is open, and at rest. It runs once:
//
//	go test -run '^$' -bench OpenChallenges -benchtime 1x ./internal/sockload
func BenchmarkOpenChallenges(b *testing.B) {
	const many = 50_000
	s := start(b, many+extra)
	s.challenges(many, many+extra, 2)
	time.Sleep(2 * time.Second)
	before := s.measure("gc")
	b.Log("before     ", before)
	s.challenges(0, many, each)
	open := s.measure("now")
	b.Log("open       ", open)
	time.Sleep(time.Minute)
	rest := s.measure("now")
	b.Log("a minute on ", rest)
	cost := func(m memory) float64 { return (float64(m.RSS) - float64(before.RSS)) / many / each }
	b.ReportMetric(cost(open), "B/challenge-just-opened")
	b.ReportMetric(cost(rest), "B/challenge")
}
