//go:build generated

// Command goclient is an integrator's program with the client that oapi-codegen generates from docs/openapi.json. It
// logs in with a code from the outbox of development mode, lists the sessions and logs out. The generated half is not
// committed; the test of test/office generates it and builds both with the tag generated.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	_ "github.com/oapi-codegen/runtime" // of the generated half
)

func main() {
	if err := run(context.Background(), os.Getenv("BASE_URL"), os.Getenv("EMAIL"), os.Getenv("PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, base, email, password string) error {
	c, err := NewClientWithResponses(base)
	if err != nil {
		return err
	}
	token, err := login(ctx, c, base, email, password)
	if err != nil {
		return err
	}
	with := func(_ context.Context, r *http.Request) error { r.Header.Set("x-auth", token); return nil }
	sessions, err := c.ListSessionsWithResponse(ctx, with)
	if err != nil || sessions.JSON200 == nil || len(*sessions.JSON200) == 0 {
		return refused("sessions", err, sessions)
	}
	ended, err := c.LogoutWithResponse(ctx, with)
	if err != nil || ended.JSON200 == nil {
		return refused("logout", err, ended)
	}
	after, err := c.ListSessionsWithResponse(ctx, with)
	if err != nil || after.Problem == nil || after.Problem.Code != "TOKEN_REVOKED" {
		return refused("after the logout", err, after)
	}
	return nil
}

func login(ctx context.Context, c *ClientWithResponses, base, email, password string) (token string, err error) {
	started, err := c.LoginWithResponse(ctx, nil, LoginRequest{Email: &email, Password: &password})
	if err != nil || started.JSON200 == nil {
		return "", refused("login", err, started)
	}
	var mail ChallengeMethod
	for _, m := range started.JSON200.Challenge.MethodList {
		if m.Name == "MAIL" {
			mail = m
		}
	}
	code, err := codeFromOutbox(base, email)
	if err != nil {
		return "", err
	}
	wrong := "000000"
	if strings.HasPrefix(code, "0") {
		wrong = "111111"
	}
	pAuth := started.HTTPResponse.Header.Get("p-auth")
	answer := func(value string) (*Result[ChallengeCompletion], error) {
		return c.CompleteChallengeWithResponse(ctx, nil,
			CompleteChallengeRequest{MethodId: mail.Id, Method: "MAIL", Value: value},
			func(_ context.Context, r *http.Request) error { r.Header.Set("p-auth", pAuth); return nil })
	}
	tried, err := answer(wrong)
	if err != nil || tried.Problem == nil || tried.Problem.AttemptsLeft == nil {
		return "", refused("a wrong code", err, tried)
	}
	completed, err := answer(code)
	if err != nil || completed.JSON200 == nil {
		return "", refused("complete", err, completed)
	}
	result := completed.JSON200.ExecResult
	if result == nil || !result.Success || result.Data == nil || result.Data.SessionKey == nil {
		return "", fmt.Errorf("complete: %s", completed.Body)
	}
	return completed.HTTPResponse.Header.Get("x-auth"), nil
}

// refused returns an error that names the failed step.
func refused[T any](step string, err error, r *Result[T]) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", step, err)
	case r.Problem != nil:
		return fmt.Errorf("%s: %d %s: %s", step, r.Problem.Status, r.Problem.Code, r.Problem.Detail)
	}
	return fmt.Errorf("%s: not the answer that was expected: %s", step, r.Body)
}

func codeFromOutbox(base, email string) (string, error) {
	res, err := http.Get(base + "/dev/outbox?to=" + url.QueryEscape(email))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var letters []struct{ Code string }
	if err := json.NewDecoder(res.Body).Decode(&letters); err != nil || len(letters) == 0 {
		return "", fmt.Errorf("no code in the outbox: %w", err)
	}
	return letters[0].Code, nil
}
