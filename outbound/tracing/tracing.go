// Package tracing traces requests through the program and sends the spans to a collector, as in OpenTelemetry. A trace
// has a span for the request, one for each call of an actor and for its handling, on whichever node, and one for each
// commit.
//
// A span contains route templates, names of messages, counts and codes: no path, query, header, address, personal id or
// error text. An unreachable collector delays nothing: spans are dropped when too many wait, and the log says so once.
// The other parts of the program do not depend on this package; cmd/app passes its methods to them as hooks.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

type Config struct {
	Endpoint string // of OTLP over HTTP; without a path it is /v1/traces
	Headers  map[string]string
	// Ratio is the fraction of the requests that is traced, 0 to 1.
	Ratio         float64
	Version, Node string
	Log           *slog.Logger
}

// Tracer creates spans and sends them. It is a cluster.Tracing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	w3c      propagation.TraceContext
}

// New starts a tracer. It opens no connection until there is a span to send.
func New(c Config) (*Tracer, error) {
	out, err := newExporter(c.Endpoint, c.Headers)
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(
		attribute.String("service.name", "castellan"),
		attribute.String("service.version", c.Version),
		attribute.String("service.instance.id", c.Node),
	)
	p := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSampler(sampler{c.Ratio}),
		sdktrace.WithBatcher(&outageLogger{SpanExporter: out, log: c.Log}, sdktrace.WithBatchTimeout(time.Second)))
	return &Tracer{provider: p, tracer: p.Tracer("castellan")}, nil
}

// Close sends the waiting spans, until ctx ends, and stops.
func (t *Tracer) Close(ctx context.Context) { t.provider.Shutdown(ctx) } // export failures were already logged

// outageLogger logs once that spans cannot be sent, and once that they can be sent again.
type outageLogger struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
}

func (q *outageLogger) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !q.failing.Swap(true):
		q.log.Warn("traces cannot be sent to the collector; they are dropped", "err", err)
	case err == nil && q.failing.Swap(false):
		q.log.Info("traces reach the collector again")
	}
	return nil
}

// decidedKey marks a context whose parent span may decide about sampling.
type decidedKey struct{}

// sampler follows the sampling decision of a local parent, or of a trusted proxy. The parent of another client decides
// nothing: otherwise a client could have all its requests recorded.
type sampler struct{ ratio float64 }

func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	decision := sdktrace.Drop
	decides := parent.IsValid() && (!parent.IsRemote() || p.ParentContext.Value(decidedKey{}) != nil)
	// #nosec G404: the choice of traced requests is no secret.
	if decides && parent.IsSampled() || !decides && rand.Float64() < s.ratio {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision, Tracestate: parent.TraceState()}
}

func (s sampler) Description() string { return fmt.Sprintf("castellan{%g}", s.ratio) }

// Request begins the span of a request. key is "<METHOD> <template>"; parent and state are the W3C headers as they were
// sent. Invalid headers are ignored.
func (t *Tracer) Request(ctx context.Context, key string, start time.Time, parent, state string,
	trusted bool) (context.Context, func(status int, code string)) {
	if parent != "" {
		ctx = t.w3c.Extract(ctx, propagation.MapCarrier{"traceparent": parent, "tracestate": state})
		if trusted {
			ctx = context.WithValue(ctx, decidedKey{}, true)
		}
	}
	method, route, _ := strings.Cut(key, " ")
	ctx, span := t.tracer.Start(ctx, key, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(start),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route)))
	return ctx, func(status int, code string) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if code != "" {
			span.SetAttributes(attribute.String("error.type", code))
		}
		if status >= 500 {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func (t *Tracer) actor(ctx context.Context, kind, message string, side trace.SpanKind) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, kind+" "+message, trace.WithSpanKind(side), trace.WithAttributes(
		attribute.String("castellan.actor.kind", kind), attribute.String("castellan.message", message)))
}

func unfollowed(error) {}

// Call begins the span of a call. A call outside a traced request is not traced either.
func (t *Tracer) Call(ctx context.Context, kind, message string) (along string, ended func(error)) {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return "", unfollowed
	}
	ctx, span := t.actor(ctx, kind, message, trace.SpanKindClient)
	carrier := propagation.MapCarrier{}
	t.w3c.Inject(ctx, carrier)
	return carrier["traceparent"], func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func (t *Tracer) Handle(along, kind, message string) (context.Context, func(failed bool)) {
	ctx := t.w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": along})
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return context.Background(), func(bool) {}
	}
	ctx, span := t.actor(context.WithValue(ctx, decidedKey{}, true), kind, message, trace.SpanKindServer)
	return ctx, func(failed bool) {
		if failed {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
