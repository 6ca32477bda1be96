// Package control lets commands of the operator reach the running service of the same data folder. The service listens
// on control.sock there, a socket for its own user only. The permission of the file is the authentication, because the
// same user can read the keys and the database.
//
// A connection carries one Request and one Answer as JSON. Start reading at Listen and Call.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/ratelimit"
)

// Request asks for one thing: the counters of rate limits, or the reset of one.
type Request struct {
	Counters *firewall.CounterQuery `json:",omitempty"`
	Reset    *Reset                 `json:",omitempty"`
}

// Reset names a counter.
type Reset struct{ Label, Entity, Reason string }

// Answer has the result of a Request, or the text of an error.
type Answer struct {
	Counters   []ratelimit.Counter `json:",omitempty"`
	Silent     []string            `json:",omitempty"` // nodes that did not answer
	UsedBefore int64               `json:",omitempty"`
	Error      string              `json:",omitempty"`
}

const (
	// answerTimeout bounds a request.
	answerTimeout = 10 * time.Second
	maxRequest    = 64 << 10 // bytes
)

// Path returns the socket of a data folder.
func Path(dataDir string) string { return filepath.Join(dataDir, "control.sock") }

// Listen serves the requests of a data folder until ctx ends. It does nothing but log if the socket cannot be made, for
// example because the path is longer than the system permits.
func Listen(ctx context.Context, dataDir string, log *slog.Logger, answer func(context.Context, Request) Answer) {
	l, err := listen(Path(dataDir))
	if err != nil {
		log.Warn("commands such as castellan waf counters cannot reach this service", "err", err)
		return
	}
	stop := context.AfterFunc(ctx, func() { l.Close() }) // it removes the file
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() == nil {
				log.Warn("the socket for commands was closed", "err", err)
			}
			return
		}
		serve(ctx, conn, answer)
	}
}

// listen replaces the socket of a process that has ended. With PostgreSQL nothing else makes the folder.
func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another service uses %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func serve(ctx context.Context, conn net.Conn, answer func(context.Context, Request) Answer) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn.SetDeadline(time.Now().Add(answerTimeout))
	var q Request
	if json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&q) == nil {
		json.NewEncoder(conn).Encode(answer(ctx, q))
	}
}

// Call sends a request to the running service of a data folder.
func Call(ctx context.Context, dataDir string, q Request) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", Path(dataDir))
	if err != nil {
		return a, fmt.Errorf("no running service uses this data_dir: %w", err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(answerTimeout))
	if err := json.NewEncoder(conn).Encode(q); err != nil {
		return a, err
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return a, fmt.Errorf("read the answer of the service: %w", err)
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
