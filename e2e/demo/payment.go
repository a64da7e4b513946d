package main

import (
	"context"
	"fmt"
)

// payment is the seeds' "Tracking Problem": who uses payment-api-config? The kubectl plugin
// says it, and what an edit would do, and that is compared with what the edit does.
func payment(ctx context.Context, s *stage) error {
	users := []string{"legacy-app", "notification-service", "payment-api", "reporting-service"}
	if err := s.apply(ctx, "payment.yaml"); err != nil {
		return err
	}
	if err := s.rolledOut(ctx, users...); err != nil {
		return err
	}
	const source = "configmap/payment-api-config"
	s.say("\n  Who uses it? \"payment-api (confirmed), notification-service (confirmed), reporting-service (possibly?),\n  legacy-app (unknown)\", says the article that this scene is from. The kubectl plugin knows:")
	if err := s.tells(ctx, append([]string{"An edit restarts 4 of 4 workloads."}, users...), "configstamp", "users", source); err != nil {
		return err
	}
	s.say("\n  The endpoint has to change. What would that restart?")
	if err := s.tells(ctx, users, "configstamp", "users", source, "--key", "SETTING_ENDPOINT", "-o", "name"); err != nil {
		return err
	}
	s.say("\n  kubectl itself warns before an edit, without a plugin, and a dry run changes nothing:")
	warning := fmt.Sprintf("this change rolls out deployment/%s, ", users[0])
	if err := s.tells(ctx, []string{"Warning: configstamp: " + warning, " and 2 more, one first"},
		"patch", source, "--patch", `{"data":{"SETTING_ENDPOINT":"https://pay.example/v2"}}`, "--dry-run=server"); err != nil {
		return err
	}
	s.say("\n  One terminal watches; the edit is made in another.")
	if err := s.watch(ctx, func() error {
		return s.edit(ctx, source, "pay.example/v1", "pay.example/v2", warning)
	}, "configstamp", "status", "--watch"); err != nil {
		return err
	}
	for _, user := range users {
		if err := s.answers(ctx, user, "https://pay.example/v2"); err != nil {
			return err
		}
	}
	if err := s.rolled(ctx, 2, users...); err != nil {
		return err
	}
	s.say("\n  Months later: why did legacy-app restart?")
	if err := s.tells(ctx, []string{source + " was edited", "Next: nothing"}, "configstamp", "why", "deployment/legacy-app"); err != nil {
		return err
	}
	return s.rolled(ctx, 1, "bystander")
}
