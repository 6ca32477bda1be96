package system

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/http/edge"
	"castellan/http/rest"
)

// readyTime bounds the round trip of a readiness check.
const readyTime = 2 * time.Second

// The health checks: whether the process lives, and whether it can serve.
const (
	livePath  = "/health/live"
	readyPath = "/health/ready"
)

const healthy = `{"status":"ok"}`

// ready is the reason why no request can be served; nil if requests can be served.
func (o Options) ready() error {
	if o.Draining() {
		return fault.New(fault.Draining, "this node is shutting down")
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	if err := o.Ready(ctx); err != nil {
		return fault.New(fault.Unavailable, "not ready").After(time.Second)
	}
	return nil
}

// readyAge is the time for which a readiness result is reused, so that frequent checks cost no round trips.
const readyAge = 250 * time.Millisecond

// lately caches ready for readyAge; concurrent callers share one round trip.
func lately(ready func(ctx context.Context) error) func(ctx context.Context) error {
	var mu sync.Mutex
	var at time.Time
	var last error
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= readyAge {
			last, at = ready(ctx), time.Now()
		}
		return last
	}
}

// mountHealth adds the health checks to a server.
func mountHealth(s *edge.Server, o Options) {
	o.Ready = lately(o.Ready)
	answer := func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, rest.TypeJSON)
		return c.SendString(healthy)
	}
	s.Raw(fiber.MethodGet, livePath, answer)
	s.Raw(fiber.MethodGet, readyPath, func(c *fiber.Ctx) error {
		if err := o.ready(); err != nil {
			return err
		}
		return answer(c)
	})
}

// Health answers the health checks on a listener of its own, which is not full when
// the public one is (D-GEN-22).
func Health(o Options) http.Handler {
	o.Ready = lately(o.Ready)
	answer := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", rest.TypeJSON)
		io.WriteString(w, healthy)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+livePath, func(w http.ResponseWriter, _ *http.Request) { answer(w) })
	mux.HandleFunc("GET "+readyPath, func(w http.ResponseWriter, _ *http.Request) {
		err := o.ready()
		if err == nil {
			answer(w)
			return
		}
		f, _ := rest.FaultOf(err)
		status, body := rest.Problem(f, "en", id.New(time.Now()))
		w.Header().Set("Content-Type", rest.TypeProblem)
		w.Header().Set("Retry-After", strconv.Itoa(rest.RetryAfter(f)))
		w.WriteHeader(status)
		w.Write(body)
	})
	return mux
}
