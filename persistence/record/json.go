package record

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"castellan/persistence/engine"
)

// JSON is a column of JSON text. A row declares the type of its record, and the conversions copy V:
//
//	Titles record.JSON[announcement.Texts]
type JSON[T any] struct{ V T }

func JSONOf[T any](v T) JSON[T] { return JSON[T]{v} }

func (j JSON[T]) Value() (driver.Value, error) { return engine.WriteJSON(j.V), nil }

// Scan reads the text of the column; NULL is the zero value.
func (j *JSON[T]) Scan(column any) (err error) {
	*j = JSON[T]{}
	switch text := column.(type) {
	case nil:
		return nil
	case string:
		err = json.Unmarshal([]byte(text), &j.V)
	case []byte:
		err = json.Unmarshal(text, &j.V)
	default:
		err = fmt.Errorf("a column of type %T", column)
	}
	if err != nil {
		err = fmt.Errorf("read a stored %T: %w", j.V, err)
	}
	return err
}
