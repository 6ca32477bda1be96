package user

import "testing"

// A placeholder can be stored and never receives messages (D-COR-02).
func TestPlaceholder(t *testing.T) {
	for n, want := range map[int64]string{1: "+900000000001", 999_999_999: "+900999999999"} {
		u := User{ID: "u", Email: "u@example.com"}
		u.SetPlaceholder(n)
		if u.CountryCode != "90" || u.Phone != want || u.Reachable() != "" || u.Account().Phone != "" {
			t.Errorf("%d: %+v, reachable as %q", n, u, u.Reachable())
		}
		if err := (Add{User: u}).Validate(); err != nil {
			t.Error(err)
		}
	}
	for _, phone := range []string{"+905320000000", "+9", "+449000000000"} {
		if got := (User{Phone: phone}).Reachable(); got != phone {
			t.Errorf("%s is reachable as %q", phone, got)
		}
	}
}
