package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
)

// outside answers after the time that its rule names for a host; a negative one is a timeout after it.
type outside struct {
	place
	took func(host string) time.Duration

	started          []string // keys, in their order
	at               map[string]time.Time
	underWay, peak   map[string]int // by host
	together, widest int
}

func hostOf(to string) string { return to[strings.LastIndexByte(to, '@')+1:] }

func (o *outside) count(host string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.underWay[host] += by
	o.together += by
	o.peak[host], o.widest = max(o.peak[host], o.underWay[host]), max(o.widest, o.together)
}

func (o *outside) Send(ctx context.Context, key string, m message.Rendered) error {
	host := hostOf(m.To)
	o.mu.Lock()
	o.started = append(o.started, key)
	o.at[key] = time.Now()
	o.mu.Unlock()
	o.count(host, 1)
	defer o.count(host, -1)
	took := o.took(host)
	time.Sleep(max(took, -took))
	if took < 0 {
		return &message.DeliveryError{Timeout: true, Err: errors.New("no answer in time")}
	}
	return nil
}

// pass advances the time and lets all goroutines run.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (o *outside) state(id string) (last outbox.State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	last = -1
	for _, s := range o.settled {
		if s.ID == id {
			last = s.State
		}
	}
	return last
}

func (o *outside) begun(id string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.at[id]
}

// begunAll returns the keys of all attempts, in their order.
func (o *outside) begunAll() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.started)
}

// seen returns the attempts at a host: the most at once, and those under way.
func (o *outside) seen(host string) (peak, underWay int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.peak[host], o.underWay[host]
}

// all returns the attempts: those under way, and the most at once.
func (o *outside) all() (underWay, peak int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.together, o.widest
}

func known(d *Dispatcher) (hosts, users int) {
	l := d.lanes[message.Push]
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hosts), len(l.users)
}
