package gateway

import (
	"context"
	"time"
	"unicode/utf8"
)

// Spelled names requests that a route refuses, or would refuse after its trial, because some servers take them for
// others.
type Spelled struct {
	RouteID int64
	Reader  string    // the servers
	Hour    time.Time // the full hour of the requests
	Sent    string    // the segment of the first of them
	Count   int64
}

// maxSent bounds Spelled.Sent, in bytes.
const maxSent = 64

// spelledKey is what is counted together.
type spelledKey struct {
	route  int64
	reader string
	hour   int64
}

// note counts a request that is spelled in another way. It is stored by Flush.
func (g *Guard) note(m Match) {
	hour := g.Now().Truncate(time.Hour)
	key := spelledKey{m.Respelled.ID, m.Reader, hour.UnixMilli()}
	g.spelledMu.Lock()
	defer g.spelledMu.Unlock()
	if g.spelled == nil {
		g.spelled = map[spelledKey]*Spelled{}
	}
	s, known := g.spelled[key]
	if !known {
		s = &Spelled{RouteID: key.route, Reader: key.reader, Hour: hour, Sent: short(m.Sent)}
		g.spelled[key] = s
	}
	s.Count++
}

// short returns the start of a segment, which has at most maxSent bytes of whole characters.
func short(segment string) string {
	if len(segment) <= maxSent {
		return segment
	}
	n := maxSent
	for !utf8.RuneStart(segment[n]) {
		n--
	}
	return segment[:n]
}

// Flush stores the counts of this node since the last call. After an error they are stored by a later call.
func (g *Guard) Flush(ctx context.Context) error {
	g.spelledMu.Lock()
	taken := g.spelled
	g.spelled = nil
	g.spelledMu.Unlock()
	for key, s := range taken {
		if err := g.Store.Count(ctx, *s); err != nil {
			g.restore(taken)
			return err
		}
		delete(taken, key)
	}
	return nil
}

// restore adds counts that could not be stored.
func (g *Guard) restore(counts map[spelledKey]*Spelled) {
	g.spelledMu.Lock()
	defer g.spelledMu.Unlock()
	for key, s := range g.spelled {
		if old, known := counts[key]; known {
			s.Count += old.Count
		}
		counts[key] = s
	}
	g.spelled = counts
}
