package budget_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"castellan/cmd/app"
	"castellan/cmd/app/doctor"
	"castellan/config"
	"castellan/domain/delivery/message"
	"castellan/internal/blackbox"
)

// The program under test is the service in a separate process, so that the test's own work is not counted. It answers
// queries about its costs on a second listener.

func TestMain(m *testing.M) { blackbox.Main(m, program) }

// Commands of the program.
const (
	seedCommand    = "seed"    // creates accounts and writes them to standard output
	serveCommand   = "serve"   // serves
	countedCommand = "counted" // serves and counts what it sends to SQLite
)

func program() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := config.Load("", os.Environ(), doctor.Check)
	if err == nil {
		switch os.Args[1] {
		case seedCommand:
			err = seed(ctx, cfg, os.Stdout)
		default:
			err = serve(ctx, cfg, os.Args[1] == countedCommand)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

// Queries that the program answers on its second listener, a byte each.
const (
	askAllocations = 'a' // the number of allocations so far: 8 bytes
	askCounts      = 'c' // the counts since the last such query: a line of JSON
)

func serve(ctx context.Context, cfg config.Config, counted bool) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: cfg.Log.SlogLevel()}))
	slog.SetDefault(log)
	sent := phone{os.Stdout}
	o := app.Options{Version: "budget", Log: log, Out: io.Discard, Senders: map[message.Channel]message.Sender{
		message.SMS: sent, message.MAIL: sent, message.Push: sent}}
	var tally *sqliteTally
	if counted {
		path, _ := cfg.Database.SQLitePath()
		tally = newSQLiteTally(path)
		o.Trace = tally.statement
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(questionsAt, l.Addr())
	go func() {
		if err := answer(l, tally); err != nil {
			log.Error("a question was not answered", "err", err)
		}
	}()
	return app.Serve(ctx, cfg, o)
}

// answer answers the queries of one connection.
func answer(l net.Listener, tally *sqliteTally) error {
	c, err := l.Accept()
	if err != nil {
		return err
	}
	var question [1]byte
	var number [8]byte
	var memory runtime.MemStats
	for {
		if _, err := io.ReadFull(c, question[:]); err != nil {
			return nil // the test has ended
		}
		switch question[0] {
		case askAllocations: // without its own allocation
			runtime.ReadMemStats(&memory)
			binary.BigEndian.PutUint64(number[:], memory.Mallocs)
			_, err = c.Write(number[:])
		case askCounts:
			var counts counts
			if counts, err = tally.take(); err == nil {
				err = json.NewEncoder(c).Encode(counts)
			}
		}
		if err != nil {
			c.Close()
			return err
		}
	}
}

// Lines that the program writes to standard output.
const (
	questionsAt = "questions"
	codeFor     = "code"
)

// phone is the receiver of all messages. It writes the codes for the test.
type phone struct{ out io.Writer }

func (p phone) Send(_ context.Context, _ string, m message.Rendered) error {
	if m.Code == "" {
		return nil
	}
	_, err := fmt.Fprintln(p.out, codeFor, m.To, m.Code)
	return err
}

// counts are the counts of a sample.
type counts struct {
	Statements   map[string]int // by normalised text
	RoundTrips   map[string]int // by their statements
	Rows         map[string]int // by table
	Entries      map[string]int // by index
	Transactions int
	WALBytes     int
	Allocations  int
}

// size is a sum of counts. It selects the example of a flow: the least disturbed sample.
func (c counts) size() int {
	return total(c.Statements) + total(c.RoundTrips) + total(c.Rows) + total(c.Entries)
}

// maxShown is the length to which breakdown cuts the text of statements, in characters.
const maxShown = 140

// breakdown lists the counts, for a comparison with a run before the change.
func (c counts) breakdown() string {
	var b strings.Builder
	for _, part := range []struct {
		name string
		of   map[string]int
	}{{"statement", c.Statements}, {"round trip", c.RoundTrips}, {"row of", c.Rows}, {"entry of", c.Entries}} {
		for _, key := range sorted(part.of) {
			fmt.Fprintf(&b, "  %d %s %.*s\n", part.of[key], part.name, maxShown, key)
		}
	}
	return b.String()
}

// texts counts texts. It is safe for concurrent use.
type texts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *texts) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[text]++
}

// take returns the counts since the last call.
func (c *texts) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of
	c.of = nil
	return of
}
