from service.constraints import Constraints


def test_room_is_needed_for_the_longest_form_of_each_term() -> None:
    assert Constraints((((7,), (8, 9, 10)), ((7, 8),)), {9}).tokens == 3 + 2
