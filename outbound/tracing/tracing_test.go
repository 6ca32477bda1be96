package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

// place collects the spans that a tracer sends.
type place struct {
	mu     sync.Mutex
	spans  map[string]*otlp.Span // by name
	status int
}

func (p *place) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var got otlp.TracesData
	if r.URL.Path != "/v1/traces" || r.Header.Get("X-Key") != "k" || proto.Unmarshal(text, &got) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rs := range got.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				p.spans[s.Name] = s
			}
		}
	}
	w.WriteHeader(p.status)
}

func start(t *testing.T, ratio float64, status int) (*Tracer, *place, *strings.Builder) {
	t.Helper()
	p, log := &place{spans: map[string]*otlp.Span{}, status: status}, &strings.Builder{}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	tr := storetest.Value(New(
		Config{
			Endpoint: server.URL + "/",
			Headers:  map[string]string{"x-key": "k"},
			Ratio:    ratio,
			Version:  "1",
			Node:     "n",
			Log:      slog.New(slog.NewTextHandler(log, nil)),
		},
	))(t)
	return tr, p, log
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"

// The sampling flag of an untrusted client is ignored; a trusted proxy's decides, either way.
func TestTrustedProxyDecidesSampling(t *testing.T) {
	for _, c := range []struct {
		name    string
		ratio   float64
		sent    string
		trusted bool
		want    bool
	}{
		{"nobody, always", 1, "", false, true},
		{"nobody, never", 0, "", true, false},
		{"a stranger says yes", 0, parent + "1", false, false},
		{"a stranger says no", 1, parent + "0", false, true},
		{"a proxy says yes", 0, parent + "1", true, true},
		{"a proxy says no", 1, parent + "0", true, false},
		{"nonsense", 1, "00-zz-01", true, true},
	} {
		tr, p, _ := start(t, c.ratio, 200)
		ctx, ended := tr.Request(t.Context(), "GET /x", time.Now(), c.sent, "", c.trusted)
		along, called := tr.Call(ctx, "user", "UserSend")
		storetest.Equal(t, (along != ""), c.want, c.name, along, "goes along")
		called(nil)
		ended(200, "")
		tr.Close(t.Context())
		if s := p.spans["GET /x"]; (s != nil) != c.want {
			t.Errorf("%s: followed: %t", c.name, s != nil)
		} else if s != nil && strings.HasPrefix(c.sent, parent) && (fmt.Sprintf("%x",
			s.TraceId) != parent[3:35] || fmt.Sprintf("%x", s.ParentSpanId) != parent[36:52]) {
			t.Errorf("%s: not a part of the trace that was sent", c.name)
		}
	}
}

// gathering commits with two others.
type gathering struct{ err error }

func (g gathering) Commit(context.Context, ...commit.Write) error { return g.err }

func (g gathering) CommitGathered(context.Context, ...commit.Write) (int, error) { return 3, g.err }

func (g gathering) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// The spans of a request are linked, across a call too, and record failures without the error text.
func TestSpansAreLinked(t *testing.T) {
	tr, p, _ := start(t, 1, 200)
	ctx, ended := tr.Request(t.Context(), "POST /x", time.Now(), "", "", false)
	along, called := tr.Call(ctx, "user", "UserSend")
	there, handled := tr.Handle(along, "user", "UserSend")
	db := Committer{
		Gathering: gathering{errors.New("duplicate key of a-person@example.test")},
		Tracer:    tr,
		System:    "sqlite",
	}
	db.InTx(there, func(ctx context.Context) error { return db.Commit(ctx) })
	handled(true)
	called(errors.New("lost a-person@example.test"))
	ended(503, "UNAVAILABLE")
	for _, nonsense := range []string{"", "x", strings.Repeat("0", 1<<16)} {
		if ctx, ended := tr.Handle(nonsense, "k", "M"); ctx != context.Background() {
			t.Errorf("%.10q is a place in a trace", nonsense)
		} else {
			ended(false)
		}
	}
	storetest.Fails(t, db.Commit(context.Background()), "", "a commit outside of a trace did not happen")
	tr.Close(t.Context())
	all := fmt.Sprint(p.spans)
	storetest.Lacks(t, all, "a-person", "the spans")
	request, handler, tx, last := p.spans["POST /x"], p.spans["user UserSend"], p.spans["transaction"], p.spans["commit"]
	if len(p.spans) != 4 || string(last.ParentSpanId) != string(tx.SpanId) ||
		string(last.TraceId) != string(request.TraceId) || string(handler.TraceId) != string(request.TraceId) {
		t.Errorf("not linked: %v", all)
	}
	for _, s := range p.spans {
		if s.Status.Code != otlp.Status_STATUS_CODE_ERROR || s.Status.Message != "" {
			t.Errorf("%s: status %v", s.Name, s.Status)
		}
	}
	storetest.Contains(t, fmt.Sprint(last.Attributes), "db.operation.batch.size")
}

// A refusing collector is logged once, however often it refuses.
func TestRefusalIsLoggedOnce(t *testing.T) {
	tr, _, log := start(t, 1, 500)
	for range 3 {
		_, ended := tr.Request(t.Context(), "GET /x", time.Now(), "", "", false)
		ended(200, "")
		tr.provider.ForceFlush(t.Context())
	}
	tr.Close(t.Context())
	if n := strings.Count(log.String(), "traces cannot be sent"); n != 1 ||
		!strings.Contains(log.String(), "the collector answered 500") {
		t.Errorf("said %d times: %s", n, log)
	}
}
