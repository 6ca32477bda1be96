package engine

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
)

// boundStatement is a statement with the rows of one transaction.
type boundStatement struct {
	*statement
	rows reflect.Value // a slice of row structs
	// writes holds, for each row, the index of the write that it belongs to.
	writes []int
	// keys are the keys of the accepted rows that PostgreSQL returns; nil if rows cannot be refused.
	keys []string
}

// value returns one column of one row, in a type that drivers accept.
func (b *boundStatement) value(row, column int) any {
	f := b.rows.Index(row).FieldByIndex(b.columns[column].index)
	switch f.Kind() {
	case reflect.String:
		return f.String()
	case reflect.Bool:
		return f.Bool()
	case reflect.Slice:
		if f.IsNil() {
			return nil
		}
		return f.Bytes()
	default:
		return f.Int()
	}
}

// values returns SQLite's parameters for one row.
func (b *boundStatement) values(row int) []any {
	out := make([]any, len(b.params))
	for i, column := range b.params {
		out[i] = b.value(row, column)
	}
	return out
}

// arrays returns PostgreSQL's parameters, for all rows.
func (b *boundStatement) arrays() []any {
	out := make([]any, len(b.columns))
	for i, c := range b.columns {
		switch c.typ {
		case "text":
			out[i] = array(b, c, reflect.Value.String)
		case "boolean":
			out[i] = array(b, c, reflect.Value.Bool)
		case "bytea":
			out[i] = array(b, c, reflect.Value.Bytes)
		default:
			out[i] = array(b, c, reflect.Value.Int)
		}
	}
	return out
}

func array[T any](b *boundStatement, c column, value func(reflect.Value) T) []T {
	out := make([]T, b.rows.Len())
	for i := range out {
		out[i] = value(b.rows.Index(i).FieldByIndex(c.index))
	}
	return out
}

// missing returns the writes of rows that were not returned.
func (b *boundStatement) missing(back []string) (missing []int) {
	if b.keys == nil || len(back) == len(b.keys) {
		return nil
	}
	stand := make(map[string]bool, len(back))
	for _, key := range back {
		stand[key] = true
	}
	for i, key := range b.keys {
		if !stand[key] {
			missing = append(missing, b.writes[i])
		}
	}
	return missing
}

// run executes a bound statement in the slot's transaction and returns the writes whose rows were refused.
func (s *slot) run(ctx context.Context, b *boundStatement) (missing []int, err error) {
	if s.postgres {
		return s.runPostgres(ctx, b)
	}
	prepared, err := s.tx.Tx.PrepareContext(ctx, b.sqlite) // once: the triggers of a table are planned with it
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	for row := range b.rows.Len() {
		stands, err := runSQLite(ctx, prepared, b, row)
		if err != nil {
			return nil, err
		}
		if !stands && b.keys != nil {
			missing = append(missing, b.writes[row])
		}
	}
	return missing, nil
}

func (s *slot) runPostgres(ctx context.Context, b *boundStatement) (missing []int, err error) {
	rows, err := s.tx.Tx.QueryContext(ctx, b.postgres, b.arrays()...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var back []string
	for rows.Next() {
		var key string
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		back = append(back, key)
	}
	return b.missing(back), rows.Err()
}

// runSQLite reports whether the row was accepted.
func runSQLite(ctx context.Context, s *sql.Stmt, b *boundStatement, row int) (bool, error) {
	if b.asks {
		var back string
		err := s.QueryRowContext(ctx, b.values(row)...).Scan(&back)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return err == nil, err
	}
	r, err := s.ExecContext(ctx, b.values(row)...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}
