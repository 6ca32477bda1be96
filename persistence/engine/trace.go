package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// tracer is Options.Trace in the form that the library needs.
type tracer func(ctx context.Context, statement string) (fails bool)

// BeforeQuery makes a query that fails one that was not answered in time.
func (t tracer) BeforeQuery(ctx context.Context, e *bun.QueryEvent) context.Context {
	if t(ctx, e.Query) {
		late, cancel := context.WithDeadline(ctx, time.Unix(1, 0))
		cancel()
		return late
	}
	return ctx
}

func (t tracer) AfterQuery(context.Context, *bun.QueryEvent) {}

// prepared traces a prepared query with its values in the text.
func (t tracer) prepared(ctx context.Context, text string, values []any) error {
	if t != nil && t(ctx, parameter.ReplaceAllStringFunc(text, func(p string) string {
		n, _ := strconv.Atoi(p[1:])
		return literal(values[n-1])
	})) {
		return context.DeadlineExceeded
	}
	return nil
}

// steps traces the statements of a transaction, row by row, before they run. One that fails is replaced by a statement
// that the database refuses, so that those before it run.
func (t tracer) steps(ctx context.Context, steps []step) {
	if t == nil {
		return
	}
	for _, s := range steps {
		for j := range s.statements {
			b := &s.statements[j]
			for row := range b.rows.Len() {
				text, values := strings.Split(b.sqlite, "?"), b.values(row)
				for i, v := range values {
					text[i] += literal(v)
				}
				if t(ctx, strings.Join(text, "")) {
					b.statement = refusedStatement
					break
				}
			}
		}
	}
}

// refusedStatement fails when it is executed, not when it is prepared.
var refusedStatement = &statement{asks: true, postgres: "SELECT sqrt(-pg_backend_pid())",
	failFast: "SELECT sqrt(-pg_backend_pid())", sqlite: "SELECT abs(-9223372036854775807 - 1)"}

var parameter = regexp.MustCompile(`\$[0-9]+`)

func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		return "X'" + hex.EncodeToString(v) + "'"
	case bool:
		return strings.ToUpper(strconv.FormatBool(v))
	}
	return fmt.Sprint(v)
}
