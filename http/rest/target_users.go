package rest

import (
	"context"
	"fmt"
	"reflect"

	"castellan/domain/permit/resource"
)

// The matters of Names, so that a section needs no more of the registry than these.
const (
	General  = resource.General
	Contact  = resource.Contact
	Standing = resource.Standing
)

// Named holds the users that a request names, and the matter that it decides about them (D-AUTH-03).
type Named struct {
	Users  []string
	Matter resource.Matter
}

// Naming is what an endpoint declares about the users that its requests name. Every write
// of the audiences Admin and SelfOrAdmin whose request has a field that can name a user
// declares it by Names, NamesBy or NamesNoUser; a test walks the table.
type Naming struct {
	// Rows marks users of a list whose rows are checked when they run.
	Rows bool
	// NoUser is the reason why the fields name no user.
	NoUser string

	find func(ctx context.Context, who Caller, in any) (Named, error)
}

// Declared reports whether requests name users.
func (n Naming) Declared() bool { return n.find != nil }

// Names declares that the fields hold ids of users, and that the request decides the matter m
// about them. A field is a string or a list of strings; one that is not sent names no user.
func (e Endpoint) Names(m resource.Matter, fields ...string) Endpoint {
	at := make([][]int, len(fields))
	for i, name := range fields {
		n, known := e.plan.index[name]
		if !known || !isText(pointedType(e.plan.fields[n].typ)) {
			panic(fmt.Sprintf("rest: %s: the field %q does not hold ids of users", e.Key(), name))
		}
		at[i] = e.plan.fields[n].index
	}
	e.Naming.find = func(_ context.Context, _ Caller, in any) (Named, error) {
		all := Named{Matter: m}
		for _, index := range at {
			v := reflect.ValueOf(in).Elem().FieldByIndex(index)
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					continue
				}
				v = v.Elem()
			}
			eachString(v, func(id string) bool { all.Users = append(all.Users, id); return true })
		}
		return all, nil
	}
	return e
}

func pointedType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// NamesBy is Endpoint.Names for a request that names a record of a user, or whose fields
// determine the matter. In is the type of the request. If find returns RECORD_NOT_FOUND, the
// request names no user: the handler answers for a missing record.
func NamesBy[In any](e Endpoint, find func(ctx context.Context, who Caller, in In) (Named, error)) Endpoint {
	if e.In != reflect.TypeFor[In]() {
		panic(fmt.Sprintf("rest: %s: the request is a %v", e.Key(), e.In))
	}
	found := any(find) // as a value, so that the closure has no type of its own
	e.Naming.find = func(ctx context.Context, who Caller, in any) (Named, error) {
		return found.(func(context.Context, Caller, In) (Named, error))(ctx, who, *in.(*In))
	}
	return e
}

// Rows declares that the named users are rows of a list. A row whose user may not be named
// fails when it runs; the other rows still run. The request is refused only if every row would
// fail.
func (e Endpoint) Rows() Endpoint { e.Naming.Rows = true; return e }

// NamesNoUser declares why the fields of the request, such as an id, name no user.
func (e Endpoint) NamesNoUser(reason string) Endpoint { e.Naming.NoUser = reason; return e }

// NamesNoUser applies Endpoint.NamesNoUser to the endpoints that change something and declare no user.
func (es Endpoints) NamesNoUser(reason string) Endpoints {
	return es.each(func(e *Endpoint) {
		if e.Method != "GET" && !e.Naming.Declared() && e.Naming.NoUser == "" {
			e.Naming.NoUser = reason
		}
	})
}

// Named returns the users that a bound request names; none if the endpoint declares none.
func (e *Endpoint) Named(ctx context.Context, who Caller, in any) (Named, error) {
	if !e.Naming.Declared() {
		return Named{}, nil
	}
	return e.Naming.find(ctx, who, in)
}
