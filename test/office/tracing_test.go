package office

import (
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// sent is a span as the collector received it, with the node that made it.
type sent struct {
	*spans.Span
	node string
}

func (s sent) attr(name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			switch v := a.Value.Value.(type) {
			case *common.AnyValue_StringValue:
				return v.StringValue
			case *common.AnyValue_IntValue:
				return fmt.Sprint(v.IntValue)
			}
		}
	}
	return ""
}

// collector receives spans by OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []sent
	text  strings.Builder // the whole text, to search for personal data
	auth  string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		text, err := io.ReadAll(body)
		var got spans.TracesData // the same field on the wire as of ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(text, &got)
		}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.auth = r.Header.Get("Authorization")
		c.text.WriteString(protojson.Format(&got))
		for _, from := range got.ResourceSpans {
			node := sent{Span: &spans.Span{Attributes: from.Resource.Attributes}}.attr("service.instance.id")
			for _, scope := range from.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans = append(c.spans, sent{s, node})
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// trace returns the received spans of one trace, by their ids.
func (c *collector) trace(id string) map[string]sent {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]sent{}
	for _, s := range c.spans {
		if hex.EncodeToString(s.TraceId) == id {
			found[string(s.SpanId)] = s
		}
	}
	return found
}

// lineage lists the names from the span to its outermost parent.
func lineage(all map[string]sent, s sent) string {
	names := s.Name
	for parent, ok := all[string(s.ParentSpanId)]; ok; parent, ok = all[string(parent.ParentSpanId)] {
		names += " < " + parent.Name
	}
	return names
}

func traceparent(n int) (header, id string) {
	id = fmt.Sprintf("0af7651916cd43dd8448eb21%08x", n)
	return "00-" + id + "-b7ad6b7169203331-01", id
}

// A login is one trace: the request, the calls of its actors on any node, and the commits (W3C trace context,
// OTLP over HTTP). The trace contains no personal data.
func TestLoginIsOneTrace(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	s := blackbox.NewSite(t, "postgres").
		Set("LIMITS_ENABLED=false", "TRACING_ENDPOINT="+c.URL, "TRACING_HEADERS=authorization=Bearer of-the-collector").
		Cluster()
	for range 2 {
		s.Join()
	}
	blackbox.Whole(t, s)
	demo := s.Seeded("user")
	n := s.Nodes[0]
	const login, complete = "POST /auth/login", "POST /auth/2fa/challenge/complete"
	crossed := false
	var secrets []string
	for i := 0; i < 12 && !crossed; i++ {
		header, id := traceparent(i)
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/login?secret=in-the-query", blackbox.LoginBody(demo),
			blackbox.Headers{"traceparent": header}))
		code := n.Code(t, demo, "SMS")
		got := n.Do(t, "POST", blackbox.CompletePath, blackbox.CompleteBody(f.Method(t, "SMS"), code),
			blackbox.Headers{"p-auth": f.PAuth, "traceparent": header, "user-agent": "agent-of-somebody"}).
			Is(t, 200, "")
		secrets = append(secrets, f.PAuth, f.ChallengeID, got.Header.Get("x-auth"))
		want := map[string]bool{
			login: false, complete: false,
			"user UserReserve < user UserReserve < " + login: false,
			"commit < " + login: false,
			"challenge ChallengeComplete < challenge ChallengeComplete < " + complete:          false,
			"commit < challenge ChallengeComplete < challenge ChallengeComplete < " + complete: false,
		}
		blackbox.Until(t, blackbox.Within(20), "the spans of a login", func() bool {
			all := c.trace(id)
			for _, s := range all {
				delete(want, lineage(all, s))
			}
			return len(want) == 0
		})
		all := c.trace(id)
		for _, s := range all {
			parent := all[string(s.ParentSpanId)]
			switch {
			case s.Name == login && (s.attr("http.route") != "/auth/login" || s.attr("http.request.method") != "POST" ||
				s.attr("http.response.status_code") != "200" ||
				hex.EncodeToString(s.ParentSpanId) != "b7ad6b7169203331" || s.Kind != spans.Span_SPAN_KIND_SERVER):
				t.Errorf("the span of the request: %v", s)
			case s.Name == "commit" && s.attr("db.operation.batch.size") == "0" || s.EndTimeUnixNano < s.StartTimeUnixNano:
				t.Errorf("a span: %v", s)
			case s.Kind == spans.Span_SPAN_KIND_SERVER && parent.Span != nil && parent.node != s.node:
				crossed = true
			}
		}
	}
	if !crossed {
		t.Error("no trace goes from one node to the other")
	}
	header, id := traceparent(1000)
	n.Do(t, "GET", "/never/served/here", nil, blackbox.Headers{"traceparent": header}).Is(t, 404, "NOT_FOUND")
	blackbox.Until(t, blackbox.Within(20), "the span of what no route serves",
		func() bool { return len(c.trace(id)) == 1 })
	for _, s := range c.trace(id) {
		storetest.Equal(t, s.Name, "GET *", "the span")
	}
	n.Ok(t, "GET", blackbox.KeysPath, nil, blackbox.Headers{"traceparent": "00-nonsense",
		"tracestate": strings.Repeat("x", 5000)})
	c.mu.Lock()
	defer c.mu.Unlock()
	storetest.Equal(t, c.auth, "Bearer of-the-collector", "the collector was shown")
	for _, secret := range append(secrets, demo.ID, demo.Mail, demo.Phone, demo.Password, "in-the-query",
		"agent-of-somebody", "never/served", "of-the-collector") {
		if secret != "" && strings.Contains(c.text.String(), secret) {
			t.Errorf("a trace holds %.12s…", secret)
		}
	}
}

// A collector that is down, or never answers, neither fails nor delays a request, and is reported once.
func TestMissingCollectorDelaysNoRequest(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(func() { close(over); hangs.Close() })
	for name, endpoint := range map[string]string{"refuses": "http://" + porttest.Free(t), "hangs": hangs.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := blackbox.NewSite(t, "sqlite")
			n := s.Set("LIMITS_ENABLED=false", "TRACING_ENDPOINT="+endpoint).Start()
			demo := s.Seeded("user")
			const said = "traces cannot be sent"
			slowest := time.Duration(0)
			requests := func() {
				for range 50 {
					began := time.Now()
					n.Login(t, demo)
					slowest = max(slowest, time.Since(began))
				}
			}
			requests()
			blackbox.Until(t, blackbox.Within(30), "the log says it", func() bool { return strings.Contains(n.Log(), said) })
			requests()
			began := time.Now()
			n.Stop()
			if took := time.Since(began); took > blackbox.Within(12) {
				t.Errorf("the end waited %v for the collector", took)
			}
			storetest.Equal(t, strings.Count(n.Log(), said), 1, "the log says it", "times")
			if slowest > blackbox.Within(3) { // less than the 5 s after which the first sending is given up
				t.Errorf("a login waited %v", slowest)
			}
		})
	}
}
