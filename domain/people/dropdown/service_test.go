package dropdown_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/dropdown"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

var by = audit.By{UserID: "boss"}

// Every change has one audit row, which names the changed fields; a change of nothing has none.
func TestService(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM dropdown_option")
	s := &dropdown.Service{Store: people.NewDropdowns(db), Changes: admin.Changes{Commit: db, Now: time.Now}}
	pear := dropdown.Option{Group: "FRUIT", Code: "PEAR", English: "Pear", Turkish: "Armut", Arabic: "كمثرى"}
	added, err := s.Add(t.Context(), by, pear, new(int64(1_000_000_000)))
	storetest.Must(t, err)
	apple := pear
	apple.Code = "APPLE"
	last, err := s.Add(t.Context(), by, apple, nil)
	storetest.Must(t, err)
	if last.OrderNo != 1_000_000_000 || added.OrderNo != 1_000_000_000 {
		t.Errorf("places %d, %d", added.OrderNo, last.OrderNo)
	}
	_, err = s.Add(t.Context(), by, pear, nil)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	_, err = s.Add(t.Context(), by, dropdown.Option{Group: "f", Code: "1"}, nil)
	storetest.WantsFields(t, err, "dropdownCode code nameEn nameTr nameAr")
	for range 2 {
		_, err = s.Change(t.Context(), by, added.ID, func(o *dropdown.Option) { o.English, o.Inactive = "A pear", true })
		storetest.Must(t, err)
	}
	_, err = s.Change(t.Context(), by, added.ID, func(o *dropdown.Option) { o.Arabic = "" })
	storetest.WantsFields(t, err, "nameAr")
	persistencetest.Exec(t, db, "UPDATE dropdown_option SET name_tr = ? WHERE id = ?", "Elma\ufe0f", last.ID)
	_, err = s.Change(t.Context(), by, last.ID, func(o *dropdown.Option) { o.Inactive = false }) // a name of 0.9 is kept
	storetest.Must(t, err)
	storetest.Same(t, persistencetest.Acts(t, db), []string{
		`DROPDOWN_OPTION_ADD|boss||1|group "FRUIT", code "PEAR", english "Pear", turkish "Armut", arabic "كمثرى", ` +
			"orderNo 1000000000",
		`DROPDOWN_OPTION_ADD|boss||2|group "FRUIT", code "APPLE", english "Pear", turkish "Armut", arabic "كمثرى", ` +
			"orderNo 1000000000",
		`DROPDOWN_OPTION_UPDATE|boss||1|FRUIT PEAR: english "Pear" -> "A pear", inactive false -> true`})
	persistencetest.Fails(t, db, "dropdown_option audit", func(ctx context.Context) error {
		_, err := s.Change(ctx, by, last.ID, func(o *dropdown.Option) { o.Inactive = true })
		return err
	})
}

// Without a place an option is the last of its group, and the first of a group has the place 1.
func TestPlaceOfAnOption(t *testing.T) {
	db := persistencetest.SQLite(t)
	persistencetest.Exec(t, db, "DELETE FROM dropdown_option")
	s := &dropdown.Service{Store: people.NewDropdowns(db), Changes: admin.Changes{Commit: db, Now: time.Now}}
	for i, c := range []struct {
		group string
		place *int64
		want  int64
	}{{"FRUIT", nil, 1}, {"FRUIT", nil, 2}, {"FRUIT", new(int64(7)), 7}, {"FRUIT", nil, 8}, {"TREE", nil, 1},
		{"FRUIT", new(int64(3)), 3}, {"FRUIT", nil, 9}} {
		o := dropdown.Option{Group: c.group, Code: fmt.Sprint("C", i), English: "e", Turkish: "t", Arabic: "a"}
		got, err := s.Add(t.Context(), by, o, c.place)
		if err != nil || got.OrderNo != c.want {
			t.Errorf("%d: place %d, want %d, %v", i, got.OrderNo, c.want, err)
		}
	}
	n := 0
	persistencetest.Fails(t, db, "dropdown_option audit", func(ctx context.Context) error {
		n++
		_, err := s.Add(ctx, by, dropdown.Option{Group: "TREE", Code: fmt.Sprint("F", n), English: "e", Turkish: "t",
			Arabic: "a"}, nil)
		return err
	})
}
