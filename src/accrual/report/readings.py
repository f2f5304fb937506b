"""How the paper is read here, and where it is corrected; the page shows these as they are."""

from __future__ import annotations

READINGS: tuple[tuple[str, str], ...] = (
    (
        "Caps are τ_max · ζ.",
        "The text gives 100 ζ and an appendix 100 i. At τ_max = 100 the first is the same as τ_max · ζ; "
        "at τ_max = 200 only τ_max · ζ gives the printed regrets, so that is what is used.",
    ),
    (
        "A decision pays from its own round on.",
        "Its first piece arrives in the round of the decision and its last τ_max − 1 rounds later. A "
        "policy that decides at round t knows every piece up to round t − 1.",
    ),
    (
        "Within a group, reward is paid evenly.",
        "The paper does not say how a group's total is divided over its rounds. Even payment and payment "
        "all at the group's first round both reproduce the tables; even payment is used.",
    ),
    (
        "Regret counts true means.",
        "It is the sum over decisions of how far the chosen arm's mean falls short of the best arm's: no "
        "reward noise is in it, so a hundred runs are enough for half a percent.",
    ),
    (
        "Ties and the first rounds.",
        "Each arm is tried once, in order; after that the greatest index wins, and among equals the "
        "lowest arm.",
    ),
    (
        "UCB1 has no delay.",
        "It is told a decision's whole reward at once. No learner can have that here; it is a yardstick. "
        "DelayedUCB1 uses the same index on the decisions whose window has closed, and tries arms without "
        "one first.",
    ),
    (
        "TPUCBEW is a reconstruction.",
        "The paper names it, reports two of its properties and prints no formula. Here each group's mean "
        "is estimated from the decisions that have finished that group, the means are added, and the "
        "bonus is the sum of the groups' own; a group never seen counts as its cap. Both properties come "
        "out (see the statements).",
    ),
    (
        "Scenarios 2.1 and 2.2.",
        "Late means shapes a = 2, 4, 6, … up to α and then constant, with b the mirror image; early "
        "exchanges the two. The environment and the learners share the configuration's α.",
    ),
    (
        "The bounds that are drawn.",
        "An upper bound belongs to the problem, not to a learner's guess: both are computed at the "
        "problem's own α. The β-spread one takes the spread of what the problem pays on average.",
    ),
    (
        "Spotify.",
        "A decision recommends a context; its reward is one logged session of it. Each of up to 20 songs "
        "is a group of four rounds and pays one for each quarter heard: the four nested skip flags give "
        "0, 1, 2, 3 or 4. A session belongs to the context of its first song; the six contexts with the "
        "most songs are the arms. The horizon is not printed; 100,000 rounds are used as everywhere else.",
    ),
)

CORRECTIONS: tuple[tuple[str, str], ...] = (
    (
        "The proof of Theorem 1 fails where its factor exceeds one.",
        "It multiplies the α-smooth lower bound by c = (2 E[Y] / (α + 1)) · α · Σ B(k)². The step that "
        "fails is P(E₂) → 1. E₂ says that the log-likelihood ratio between the problem and its rival "
        "stays below (1 − ε/2) ln t while the arm has fewer than f_t / α decisions. By the law of large "
        "numbers that ratio tends to c (1 − ε) ln t if all groups have a share; so for c > 1 and small ε, "
        "P(E₂) → 0. (If only m groups have a share it tends to m/α of that, and the step fails for c > "
        "α/m.) And not only the proof: with all reward in the last group the printed bound is 2 α / (α + "
        "1) times the Lai–Robbins constant, which delayed KL-UCB attains.",
    ),
    (
        "What is true instead depends on the class of problems.",
        "A lower bound holds for the policies that are uniformly efficient on a class of problems: the "
        "larger the class, the greater the bound. Where all groups of an arm pay with one chance, a "
        "decision carries one observation for each group with a share, whatever its size: the factor is "
        "one, and the number of those groups stands for α. Where every group has a chance p_k of its own, "
        "the constant is Δ divided by the least Σ kl(p_k, q_k) with Σ B(k) q_k ≥ μ* (in caps); for small "
        "gaps that is α Σ B(k)² times the α-smooth bound. So the coincidence Σ B(k)² belongs there, and "
        "E[Y], when the groups come, does not: for small gaps the printed bound is too great for every "
        "spread later than the even one, and no greater than this one for every earlier spread. With "
        "very_begin at α = 20 and chances 0.5 and 0.35 the three are 0.164 for one chance, 0.199 as "
        "printed, and 0.986 for free chances.",
    ),
    (
        "A lower bound is a limit.",
        "It speaks of regret divided by ln T as T grows, and at any one horizon regret may be below it. "
        "So the audit measures what regret gains per unit of ln t over the last tenfold of rounds, with "
        "its standard error, and sets it beside what each bound gains.",
    ),
    (
        "The gains are those of a heuristic.",
        "The rewards of Settings 1 and 2 are α-smooth: every group may pay R / α. With begin, TPUCBFRG "
        "assumes caps for the late groups that the rewards exceed, so Theorem 2 does not cover the "
        "learners whose gains are reported. They are real in these experiments, and no theorem promises "
        "them elsewhere.",
    ),
    (
        "Slips in the proofs.",
        "In the Hoeffding display the 2 belongs outside the square (t⁻⁴ is right); the step for arms "
        "estimated too high keeps √(2 ln t / (α s)) where the index of coincidence is meant; R* and R_i "
        "are mixed up in places; and the β-spread definition needs the groups to be independent, which it "
        "leaves out.",
    ),
    (
        "Two sets of percentages.",
        "For α_est = 5, 20 and 50 the text gives gains of 4.5, 22.1 and 36.1 %, the table 4.6, 21.6 and "
        "35.6 %. The table's follow from its own regrets.",
    ),
)
