package engine

import (
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
)

// tracer is Options.Trace in the form that the library needs.
type tracer func(ctx context.Context, statement string)

func (t tracer) BeforeQuery(ctx context.Context, _ *bun.QueryEvent) context.Context { return ctx }

func (t tracer) AfterQuery(ctx context.Context, e *bun.QueryEvent) { t(ctx, e.Query) }

// prepared traces a prepared query with its values in the text.
func (t tracer) prepared(ctx context.Context, text string, values []any) {
	if t != nil {
		t(ctx, parameter.ReplaceAllStringFunc(text, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return literal(values[n-1])
		}))
	}
}

// steps traces the statements of a transaction, row by row, before they run.
func (t tracer) steps(ctx context.Context, steps []step) {
	if t == nil {
		return
	}
	for _, s := range steps {
		for _, b := range s.statements {
			for row := range b.rows.Len() {
				text, values := strings.Split(b.sqlite, "?"), b.values(row)
				for i, v := range values {
					text[i] += literal(v)
				}
				t(ctx, strings.Join(text, ""))
			}
		}
	}
}

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
