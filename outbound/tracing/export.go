package tracing

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	about "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"castellan/outbound/fetch"
)

// exporter sends spans by OTLP over HTTP, as binary protobuf. OpenTelemetry's own exporter links gRPC into the program
// for the same purpose, a fifteenth of its size. Spans that cannot be sent are dropped.
type exporter struct {
	to      string
	headers map[string]string
	client  *http.Client
}

// sendTime bounds one request.
const sendTime = 5 * time.Second

func newExporter(endpoint string, headers map[string]string) (*exporter, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint of traces: %w", err)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return &exporter{to: u.String(), headers: headers, client: fetch.HTTPClient(sendTime, nil, &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
	})}, nil
}

func (e *exporter) Shutdown(context.Context) error {
	e.client.CloseIdleConnections()
	return nil
}

// ExportSpans sends spans. All of them must be from one tracer.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	of := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: spans[0].InstrumentationScope().Name}}
	for _, s := range spans {
		of.Spans = append(of.Spans, spanOf(s))
	}
	// This message encodes like the request's, with fewer dependencies: both have this field.
	text, err := proto.Marshal(&otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{
		Resource:   &about.Resource{Attributes: attributesOf(spans[0].Resource().Attributes())},
		ScopeSpans: []*otlp.ScopeSpans{of}}}})
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to, bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, value := range e.headers {
		q.Header.Set(name, value)
	}
	q.Header.Set("Content-Type", "application/x-protobuf")
	a, err := e.client.Do(q)
	if err != nil {
		return err
	}
	defer fetch.Drain(a)
	if a.StatusCode < 200 || a.StatusCode > 299 {
		return fmt.Errorf("the collector answered %d", a.StatusCode)
	}
	return nil
}

func spanOf(s sdktrace.ReadOnlySpan) *otlp.Span {
	id, span, parent := s.SpanContext().TraceID(), s.SpanContext().SpanID(), s.Parent().SpanID()
	out := &otlp.Span{
		TraceId:           id[:],
		SpanId:            span[:],
		TraceState:        s.SpanContext().TraceState().String(),
		Name:              s.Name(),
		Kind:              otlp.Span_SpanKind(s.SpanKind()),
		StartTimeUnixNano: uint64(s.StartTime().UnixNano()),
		EndTimeUnixNano:   uint64(s.EndTime().UnixNano()),
		Attributes:        attributesOf(s.Attributes()),
		Status:            &otlp.Status{},
	}
	if s.Parent().HasSpanID() {
		out.ParentSpanId = parent[:]
	}
	if s.Status().Code == codes.Error {
		out.Status.Code = otlp.Status_STATUS_CODE_ERROR
	}
	return out
}

// attributesOf converts the types that this package sets.
func attributesOf(all []attribute.KeyValue) []*common.KeyValue {
	out := make([]*common.KeyValue, len(all))
	for i, a := range all {
		v := &common.AnyValue{}
		switch a.Value.Type() {
		case attribute.INT64:
			v.Value = &common.AnyValue_IntValue{IntValue: a.Value.AsInt64()}
		case attribute.BOOL:
			v.Value = &common.AnyValue_BoolValue{BoolValue: a.Value.AsBool()}
		default:
			v.Value = &common.AnyValue_StringValue{StringValue: a.Value.AsString()}
		}
		out[i] = &common.KeyValue{Key: string(a.Key), Value: v}
	}
	return out
}
