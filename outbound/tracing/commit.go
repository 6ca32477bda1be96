package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"castellan/domain/kit/commit"
)

// Gathering is a Committer that reports how many units shared a transaction.
type Gathering interface {
	commit.Committer
	CommitGathered(ctx context.Context, writes ...commit.Write) (units int, err error)
}

// Committer creates a span for every commit within a traced request, and for every interactive transaction.
type Committer struct {
	Gathering
	Tracer *Tracer
	System string // the database, as OpenTelemetry names it
}

func (c Committer) Commit(ctx context.Context, writes ...commit.Write) error {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return c.Gathering.Commit(ctx, writes...)
	}
	ctx, span := c.start(ctx, "commit")
	units, err := c.CommitGathered(ctx, writes...)
	span.SetAttributes(
		attribute.Int("castellan.commit.writes", len(writes)),
		attribute.Int("db.operation.batch.size", units),
	)
	c.end(span, err)
	return err
}

func (c Committer) InTx(ctx context.Context, fn func(context.Context) error) error {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return c.Gathering.InTx(ctx, fn)
	}
	ctx, span := c.start(ctx, "transaction")
	err := c.Gathering.InTx(ctx, fn)
	c.end(span, err)
	return err
}

func (c Committer) start(ctx context.Context, what string) (context.Context, trace.Span) {
	return c.Tracer.tracer.Start(ctx, what, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system.name", c.System)))
}

// end records that an operation failed, but not the error text, which may quote values.
func (c Committer) end(span trace.Span, err error) {
	switch {
	case errors.Is(err, commit.ErrFenced):
		span.SetAttributes(attribute.Bool("castellan.commit.fenced", true))
	case err != nil:
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
